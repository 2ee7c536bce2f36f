#include "host/runner_pool.hpp"

#include "core/block_signals.hpp"

#include <chrono>
#include <utility>

namespace coaccel::host {

runner_pool::runner_pool(int threads, run_function run, idle how) : run_(std::move(run)), idle_(how)
{
    threads_.reserve(static_cast<std::size_t>(threads));
    try {
        const detail::block_signals inherited;
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this] { loop(); });
    } catch (...) {
        stop();
        throw;
    }
}

void runner_pool::schedule(stream_state& s)
{
    bool wake = false;
    {
        const std::scoped_lock lock(mutex_);
        ready_[static_cast<std::size_t>(s.priority())].push_back(&s);
        ready_count_.fetch_add(1, std::memory_order_relaxed);
        wake = sleeping_ > 0;
    }
    if (wake)
        changed_.notify_one();
}

void runner_pool::stop() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_)
        t.join();
    threads_.clear();
}

stream_state* runner_pool::take() noexcept
{
    for (std::size_t p = priority_count; p-- > 0;) {
        if (ready_[p].empty())
            continue;
        // A device has a handful of streams, so the list is short.
        stream_state* first = ready_[p].front();
        ready_[p].erase(ready_[p].begin());
        ready_count_.fetch_sub(1, std::memory_order_relaxed);
        return first;
    }
    return nullptr;
}

// Ops that follow each other closely should not each pay for a thread to be woken.
bool runner_pool::linger() const noexcept
{
    if (idle_ == idle::sleep)
        return false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    do {
        for (int i = 0; i < 64; ++i)
            if (ready_count_.load(std::memory_order_relaxed) != 0)
                return true;
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

void runner_pool::loop()
{
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (stream_state* s = take()) {
            lock.unlock();
            run_(*s);
            lock.lock();
            continue;
        }
        lock.unlock();
        const bool more = linger();
        lock.lock();
        if (more || stopping_ || ready_count_.load(std::memory_order_relaxed) != 0)
            continue;
        ++sleeping_;
        changed_.wait(lock);
        --sleeping_;
    }
}

} // namespace coaccel::host
