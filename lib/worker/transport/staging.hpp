#ifndef COACCEL_WORKER_TRANSPORT_STAGING_HPP
#define COACCEL_WORKER_TRANSPORT_STAGING_HPP

#include "posix/shared_memory.hpp"
#include "worker/transport/range_allocator.hpp"

#include <coaccel/core/backend.hpp>

#include <memory>
#include <mutex>

namespace coaccel::worker {

/// The memory that a device shares with its successive workers: it holds pinned buffers, and copies of ordinary memory
/// pass through it. Data that the workers write to it never determines the position of anything.
///
/// Thread safety: any thread.
class COACCEL_DECL staging final : public detail::pinned_memory {
public:
    static result<std::shared_ptr<staging>> create(std::uint64_t bytes);

    explicit staging(detail::shared_memory area);

    // pinned_memory. Part of the memory is reserved for copies.
    result<void*> try_allocate(std::size_t bytes) override;
    void release(void* memory) noexcept override;

    /// Allocates room for a copy; nothing if there is none at the moment.
    std::optional<std::uint64_t> take(std::uint64_t bytes);
    void give_back(std::uint64_t offset) noexcept;

    /// The offset of the caller's memory in the area; no value if any of it lies outside.
    std::optional<std::uint64_t> offset_of(const void* memory, std::uint64_t bytes) const noexcept;

    std::byte* at(std::uint64_t offset) const noexcept { return area_.bytes().data() + offset; }
    std::uint64_t bytes() const noexcept { return area_.bytes().size(); }
    int fd() const noexcept { return area_.fd(); }

    /// Sets the notification for memory that becomes free after an allocation failed. An empty one removes one
    /// listener; a context may do so after its successor was added, and the last one added is notified.
    void listen(notification n) noexcept;

    std::uint64_t pinned() const noexcept;

private:
    detail::shared_memory area_;
    const std::uint64_t most_pinned_;
    mutable std::mutex mutex_;
    range_allocator ranges_;
    std::uint64_t pinned_ = 0;
    bool put_off_ = false;
    notification listener_;
    int listeners_ = 0;
};

} // namespace coaccel::worker

#endif
