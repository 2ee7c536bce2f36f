#ifndef COACCEL_HOST_PINNED_MEMORY_HPP
#define COACCEL_HOST_PINNED_MEMORY_HPP

#include <coaccel/core/backend.hpp>

#include <mutex>

namespace coaccel::host {

/// Pinned memory on the CPU: ordinary memory with a limit.
class pinned_memory final : public detail::pinned_memory {
public:
    /// A limit of 0 means no limit.
    explicit pinned_memory(std::uint64_t limit) noexcept : limit_(limit) {}

    result<void*> try_allocate(std::size_t bytes) override;
    void release(void* memory) noexcept override;

    /// Notified when memory is released after an allocation had to wait. An empty notification removes the listener.
    void listen(notification n) noexcept;
    std::uint64_t used() const noexcept;

private:
    const std::uint64_t limit_;
    mutable std::mutex mutex_;
    std::uint64_t used_ = 0;
    bool put_off_ = false;
    notification listener_;
};

} // namespace coaccel::host

#endif
