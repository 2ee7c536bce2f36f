#ifndef COACCEL_HOST_PINNED_MEMORY_HPP
#define COACCEL_HOST_PINNED_MEMORY_HPP

#include <coaccel/core/backend.hpp>

#include <mutex>

namespace coaccel::host {

/// Pinned memory where nothing needs pinning: ordinary memory, up to a limit.
class pinned_memory final : public detail::pinned_memory {
public:
    /// No limit: zero.
    explicit pinned_memory(std::uint64_t limit) noexcept : limit_(limit) {}

    result<void*> try_allocate(std::size_t bytes) override;
    void release(void* memory) noexcept override;

    /// Told when memory came back after somebody had to be put off. An empty one: nobody is.
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
