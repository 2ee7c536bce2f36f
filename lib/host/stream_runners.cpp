#include "host/stream_runners.hpp"

#include "posix/scoped_signal_block.hpp"

#include <chrono>
#include <utility>

namespace coaccel::host {

stream_runners::stream_runners(int threads, run_function run, idle how) : run_(std::move(run)), idle_(how)
{
    threads_.reserve(static_cast<std::size_t>(threads));
    try {
        const detail::scoped_signal_block inherited;
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this] { loop(); });
    } catch (...) {
        stop();
        throw;
    }
}

void stream_runners::schedule(stream_state& s)
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

void stream_runners::stop() noexcept
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

stream_state* stream_runners::take() noexcept
{
    for (std::size_t p = priority_count; p-- > 0;) {
        if (ready_[p].empty())
            continue;
        // The vector is short: a device has only a few streams.
        stream_state* first = ready_[p].front();
        ready_[p].erase(ready_[p].begin());
        ready_count_.fetch_sub(1, std::memory_order_relaxed);
        return first;
    }
    return nullptr;
}

// Polls before sleeping, so that ops in quick succession do not each pay for waking a thread.
bool stream_runners::linger() const noexcept
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

void stream_runners::loop()
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
