#include "context/sync_waiter.hpp"

#include <system_error>
#include <utility>

namespace coaccel::detail {

error_code sync_waiter::wait_for(std::function<void()> block, notification done)
{
    {
        const std::scoped_lock lock(mutex_);
        block_ = std::move(block);
        done_ = done;
        busy_.store(true, std::memory_order_release);
    }
    try {
        if (!thread_.joinable())
            thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
        busy_.store(false, std::memory_order_release);
        return errc::context_lost;
    }
    changed_.notify_one();
    return {};
}

void sync_waiter::stop() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable())
        thread_.join();
}

void sync_waiter::run()
{
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || block_; });
        if (stopping_)
            return;
        const auto block = std::exchange(block_, nullptr);
        const auto done = done_;
        lock.unlock();
        block();
        busy_.store(false, std::memory_order_release);
        done.function(done.argument);
        lock.lock();
    }
}

} // namespace coaccel::detail
