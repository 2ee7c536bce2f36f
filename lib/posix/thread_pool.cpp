#include "posix/thread_pool.hpp"

#include "posix/scoped_signal_block.hpp"

#include <exception>
#include <utility>

namespace coaccel::detail {

thread_pool::thread_pool(std::size_t limit, std::function<void()> on_start)
    : limit_(limit), on_start_(std::move(on_start))
{}

bool thread_pool::run(std::function<void()> job)
{
    const std::scoped_lock lock(mutex_);
    if (ending_)
        return false;
    try {
        jobs_.push_back(std::move(job));
    } catch (const std::exception&) {
        return false;
    }
    // A notified thread counts as waiting until it runs, so the comparison is with all queued jobs.
    if (jobs_.size() > waiting_ && threads_.size() < limit_) {
        try {
            const scoped_signal_block inherited;
            threads_.emplace_back([this] { work(); });
        } catch (const std::exception&) {
            // The threads that exist run the job.
        }
    }
    if (threads_.empty()) {
        jobs_.pop_back();
        return false;
    }
    changed_.notify_one();
    return true;
}

bool thread_pool::idle() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return jobs_.empty() && waiting_ == threads_.size();
}

void thread_pool::end(queued jobs) noexcept
{
    // Jobs are destroyed outside of the lock: they own objects with destructors of other parts.
    std::deque<std::function<void()>> dropped;
    std::vector<std::thread> threads;
    {
        const std::scoped_lock lock(mutex_);
        ending_ = true;
        if (jobs == queued::drop)
            dropped.swap(jobs_);
        threads.swap(threads_);
    }
    changed_.notify_all();
    dropped.clear();
    for (auto& t : threads)
        t.join();
}

void thread_pool::work() noexcept
{
    if (on_start_)
        on_start_();
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
        ++waiting_;
        changed_.wait(lock);
        --waiting_;
    }
}

} // namespace coaccel::detail
