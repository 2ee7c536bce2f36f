#ifndef COACCEL_WORKER_STAGING_HPP
#define COACCEL_WORKER_STAGING_HPP

#include "worker/range_book.hpp"
#include "worker/shared_area.hpp"

#include <coaccel/core/backend.hpp>

#include <memory>
#include <mutex>

namespace coaccel::worker {

/// The memory a device shares with its workers, one after another: pinned buffers live in it, and copies of ordinary
/// memory pass through it. What the workers write to it never says where anything is.
///
/// Thread safety: any thread.
class COACCEL_DECL staging final : public detail::pinned_memory {
public:
    static result<std::shared_ptr<staging>> create(std::uint64_t bytes);

    explicit staging(shared_area area);

    // pinned_memory. Some of the memory is kept for copies.
    result<void*> try_allocate(std::size_t bytes) override;
    void release(void* memory) noexcept override;

    /// Room for a copy; nothing when there is none at the moment.
    std::optional<std::uint64_t> take(std::uint64_t bytes);
    void give_back(std::uint64_t offset) noexcept;

    /// Where memory of the caller's lies in the area; nothing when not all of it does.
    std::optional<std::uint64_t> offset_of(const void* memory, std::uint64_t bytes) const noexcept;

    std::byte* at(std::uint64_t offset) const noexcept { return area_.bytes().data() + offset; }
    std::uint64_t bytes() const noexcept { return area_.bytes().size(); }
    int fd() const noexcept { return area_.fd(); }

    /// Told when memory came back after somebody had to be put off. An empty one takes one back; a context may do so
    /// after its successor has come, and the last one that came is the one that is told.
    void listen(notification n) noexcept;

    std::uint64_t pinned() const noexcept;

private:
    shared_area area_;
    const std::uint64_t most_pinned_;
    mutable std::mutex mutex_;
    range_book book_;
    std::uint64_t pinned_ = 0;
    bool put_off_ = false;
    notification listener_;
    int listeners_ = 0;
};

} // namespace coaccel::worker

#endif
