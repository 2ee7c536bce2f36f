#ifndef COACCEL_HOST_STREAM_HPP
#define COACCEL_HOST_STREAM_HPP

#include <coaccel/core/backend.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace coaccel::host {

using kernel = void (*)(bound_op&) noexcept;

class stream_runners;
class stream_state;

/// One command of a stream; commands run in order.
struct stream_item {
    enum class kind : std::uint8_t { op, wait, release, release_exportable };

    kind what = kind::op;
    kernel run = nullptr;
    bound_op* op = nullptr;
    stream_state* other = nullptr;
    std::uint64_t position = 0;
    void* memory = nullptr;
};

/// The queue of one stream: items to run, the number of items that have passed, and the watchers of that number.
///
/// Runs nothing itself. There is one producer, and at most one runner: from the first call of `next` until `next`
/// returns nullptr or the runner parks the stream at a wait.
class stream_state {
public:
    stream_state(coaccel::priority p, stream_runners* pool) noexcept : priority_(p), pool_(pool) {}

    coaccel::priority priority() const noexcept { return priority_; }
    /// The threads that run the stream; null in inline mode.
    stream_runners* pool() const noexcept { return pool_; }

    /// Adds an item. True if the stream has no runner and must be scheduled.
    bool push(const stream_item& item);

    std::uint64_t pushed() const noexcept { return pushed_; }
    std::uint64_t passed() const noexcept { return passed_.load(std::memory_order_acquire); }

    /// The item to run; nullptr if there is none and the runner must stop. Called by the runner only.
    const stream_item* next();

    /// The item that `next` returned has passed. Called by the runner only.
    void pass() noexcept;

    /// Calls n once when `position` has passed, possibly before this function returns.
    void watch(std::uint64_t position, notification n);

    /// Removes the watchers with this argument.
    void unwatch(void* argument) noexcept;

private:
    struct watcher {
        std::uint64_t position;
        notification call;
    };

    void tell(std::uint64_t position) noexcept;

    const coaccel::priority priority_;
    stream_runners* const pool_;
    std::mutex mutex_;
    std::vector<stream_item> incoming_;
    bool has_runner_ = false;
    std::uint64_t pushed_ = 0;

    std::vector<stream_item> batch_;
    std::size_t at_ = 0;

    std::atomic<std::uint64_t> passed_{0};
    std::atomic<std::size_t> watched_{0};
    std::mutex watch_mutex_;
    std::vector<watcher> watchers_;
};

} // namespace coaccel::host

#endif
