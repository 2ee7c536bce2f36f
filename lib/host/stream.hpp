#ifndef COACCEL_HOST_STREAM_HPP
#define COACCEL_HOST_STREAM_HPP

#include <coaccel/core/backend.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace coaccel::host {

using kernel = void (*)(bound_op&) noexcept;

class runner_pool;
class stream_state;

/// One thing a stream does, in order.
struct stream_item {
    enum class kind : std::uint8_t { op, wait, release };

    kind what = kind::op;
    kernel run = nullptr;
    bound_op* op = nullptr;
    stream_state* other = nullptr;
    std::uint64_t position = 0;
    void* memory = nullptr;
};

/// The order of one stream: items in, a count of passed items out, and who wants to know of it.
///
/// Runs nothing itself. One producer; one runner at a time between `next` and `park` or its end.
class stream_state {
public:
    stream_state(coaccel::priority p, runner_pool* pool) noexcept : priority_(p), pool_(pool) {}

    coaccel::priority priority() const noexcept { return priority_; }
    /// Where the stream is run; none when it is run in turn.
    runner_pool* pool() const noexcept { return pool_; }

    /// Adds an item. True when the stream has no runner and must be given one.
    bool push(const stream_item& item);

    std::uint64_t pushed() const noexcept { return pushed_; }
    std::uint64_t passed() const noexcept { return passed_.load(std::memory_order_acquire); }

    /// The item to run, or nullptr: the runner leaves. For the runner only.
    const stream_item* next();

    /// The item that `next` gave has passed. For the runner only.
    void pass() noexcept;

    /// Calls n once when `position` has passed, perhaps at once.
    void watch(std::uint64_t position, notification n);

    /// Forgets what was watched with this argument.
    void unwatch(void* argument) noexcept;

private:
    struct watcher {
        std::uint64_t position;
        notification call;
    };

    void tell(std::uint64_t position) noexcept;

    const coaccel::priority priority_;
    runner_pool* const pool_;
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
