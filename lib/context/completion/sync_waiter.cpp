#include "context/completion/sync_waiter.hpp"

#include "posix/scoped_signal_block.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

namespace coaccel::detail {

// Shared with the thread, which may outlive the sync_waiter.
struct sync_waiter::state {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<void()> block;
    notification done;
    bool stopping = false;
    bool ended = false;
    bool abandoned = false;
    std::atomic<bool> busy{false};
};

sync_waiter::sync_waiter() : state_(std::make_shared<state>()) {}

bool sync_waiter::busy() const noexcept
{
    return state_->busy.load(std::memory_order_acquire);
}

error_code sync_waiter::wait_for(std::function<void()> block, notification done)
{
    {
        const std::scoped_lock lock(state_->mutex);
        state_->block = std::move(block);
        state_->done = done;
        state_->busy.store(true, std::memory_order_release);
    }
    try {
        if (!thread_.joinable()) {
            const scoped_signal_block inherited;
            thread_ = std::thread([s = state_] { run(*s); });
        }
    } catch (const std::system_error&) {
        state_->busy.store(false, std::memory_order_release);
        return errc::context_lost;
    }
    state_->changed.notify_all();
    return {};
}

bool sync_waiter::stop(clock::time_point until) noexcept
{
    if (!thread_.joinable())
        return true;
    {
        std::unique_lock lock(state_->mutex);
        state_->stopping = true;
        state_->changed.notify_all();
        const auto ended = [this] { return state_->ended; };
        // wait_until does not support time_point::max().
        if (until != clock::time_point::max() && !state_->changed.wait_until(lock, until, ended)) {
            state_->abandoned = true;
            thread_.detach();
            return false;
        }
    }
    thread_.join();
    return true;
}

void sync_waiter::run(state& s)
{
    std::unique_lock lock(s.mutex);
    for (;;) {
        s.changed.wait(lock, [&] { return s.stopping || s.block; });
        if (s.stopping)
            break;
        const auto block = std::exchange(s.block, nullptr);
        lock.unlock();
        block();
        lock.lock();
        if (s.abandoned)
            return;
        s.busy.store(false, std::memory_order_release);
        // Under the lock, so that no notification is sent after `stop` has timed out.
        s.done.function(s.done.argument);
    }
    s.ended = true;
    s.changed.notify_all();
}

} // namespace coaccel::detail
