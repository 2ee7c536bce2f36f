#ifndef COACCEL_CONTEXT_SYNC_WAITER_HPP
#define COACCEL_CONTEXT_SYNC_WAITER_HPP

#include <coaccel/core/backend.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace coaccel::detail {

/// A thread that blocks where the executor may not; started on first use.
class COACCEL_DECL sync_waiter {
public:
    sync_waiter() = default;
    ~sync_waiter() { stop(); }

    /// Blocks in `block` on the thread, then notifies. One at a time. Fails when there can be no thread.
    error_code wait_for(std::function<void()> block, notification done);

    /// Whether the thread is between wait_for and its notification.
    bool busy() const noexcept { return busy_.load(std::memory_order_acquire); }

    /// Waits for the thread to end; what it blocks on must have been aborted.
    void stop() noexcept;

private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> block_;
    notification done_;
    bool stopping_ = false;
    std::atomic<bool> busy_{false};
    std::thread thread_;
};

} // namespace coaccel::detail

#endif
