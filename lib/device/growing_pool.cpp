#include "device/growing_pool.hpp"

#include "core/block_signals.hpp"

#include <system_error>
#include <utility>

namespace coaccel::detail {

void growing_pool::run(std::function<void()> job)
{
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
    // A thread that was woken counts as idle until it runs, hence the comparison with all that waits.
    if (jobs_.size() > idle_ && threads_.size() < limit_) {
        try {
            const block_signals inherited;
            threads_.emplace_back([this] { work(); });
        } catch (...) {
            if (threads_.empty()) {
                jobs_.pop_back();
                throw;
            }
        }
    }
    changed_.notify_one();
}

void growing_pool::join() noexcept
{
    std::vector<std::thread> threads;
    {
        const std::scoped_lock lock(mutex_);
        ending_ = true;
        threads.swap(threads_);
    }
    changed_.notify_all();
    for (auto& t : threads)
        t.join();
}

void growing_pool::work() noexcept
{
    std::unique_lock lock(mutex_);
    for (;;) {
        while (!jobs_.empty()) {
            auto job = std::move(jobs_.front());
            jobs_.pop_front();
            lock.unlock();
            job();
            job = nullptr;
            lock.lock();
        }
        if (ending_)
            return;
        ++idle_;
        changed_.wait(lock);
        --idle_;
    }
}

} // namespace coaccel::detail
