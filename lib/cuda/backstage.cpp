#include "cuda/backstage.hpp"

#include "core/block_signals.hpp"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace coaccel::cuda {

backstage::backstage(const driver_api& api, CUcontext context, int max_threads)
    : api_(api), context_(context), max_threads_(std::max(max_threads, 1))
{
    threads_.reserve(static_cast<std::size_t>(max_threads_));
}

bool backstage::run(std::function<void()> job)
{
    const std::scoped_lock lock(mutex_);
    if (stopping_)
        return false;
    try {
        jobs_.push_back(std::move(job));
    } catch (const std::bad_alloc&) {
        return false;
    }
    // A thread that was woken counts as idle until it runs, hence the comparison with all that waits.
    if (jobs_.size() > static_cast<std::size_t>(idle_) && threads_.size() < static_cast<std::size_t>(max_threads_)) {
        try {
            const detail::block_signals inherited;
            threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            if (threads_.empty()) {
                jobs_.pop_back();
                return false;
            }
        }
    }
    changed_.notify_one();
    return true;
}

bool backstage::quiet() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return jobs_.empty() && static_cast<std::size_t>(idle_) == threads_.size();
}

void backstage::stop() noexcept
{
    std::deque<std::function<void()>> dropped;
    std::vector<std::thread> threads;
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        dropped.swap(jobs_);
        threads.swap(threads_);
    }
    changed_.notify_all();
    dropped.clear();
    for (auto& t : threads)
        t.join();
}

void backstage::work()
{
    // When this fails, so will every call of the jobs, which is where it is reported.
    (void)api_.cuCtxSetCurrent(context_);
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (jobs_.empty()) {
            ++idle_;
            changed_.wait(lock);
            --idle_;
            continue;
        }
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
    }
}

} // namespace coaccel::cuda
