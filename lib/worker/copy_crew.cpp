#include "worker/copy_crew.hpp"

#include "core/block_signals.hpp"

#include <system_error>
#include <utility>

namespace coaccel::worker {

void copy_crew::run(std::function<void()> job, token t, notification done)
{
    {
        const std::scoped_lock lock(mutex_);
        if (tasks_.size() >= static_cast<std::size_t>(idle_) && threads_.size() < static_cast<std::size_t>(most_)) {
            try {
                const detail::block_signals inherited;
                threads_.emplace_back([this] { work(); });
            } catch (const std::system_error&) {
                // Those that are there do it, or nobody is.
            }
        }
        if (!threads_.empty()) {
            tasks_.push_back({std::move(job), t, done});
            changed_.notify_one();
            return;
        }
    }
    finish({std::move(job), t, done});
}

void copy_crew::finish(const task& t)
{
    t.job();
    {
        const std::scoped_lock lock(mutex_);
        done_.push_back(t.t);
    }
    t.done.function(t.done.argument);
}

void copy_crew::take_done(std::vector<token>& out)
{
    out.clear();
    const std::scoped_lock lock(mutex_);
    out.swap(done_);
}

void copy_crew::stop() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        tasks_.clear();
    }
    changed_.notify_all();
    for (auto& t : threads_)
        t.join();
    threads_.clear();
}

void copy_crew::work()
{
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (tasks_.empty()) {
            ++idle_;
            changed_.wait(lock);
            --idle_;
            continue;
        }
        const task t = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        finish(t);
        lock.lock();
    }
}

} // namespace coaccel::worker
