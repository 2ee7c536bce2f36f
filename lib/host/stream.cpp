#include "host/stream.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::host {

bool stream_state::push(const stream_item& item)
{
    const std::scoped_lock lock(mutex_);
    incoming_.push_back(item);
    ++pushed_;
    return !std::exchange(has_runner_, true);
}

const stream_item* stream_state::next()
{
    if (at_ == batch_.size()) {
        batch_.clear();
        at_ = 0;
        const std::scoped_lock lock(mutex_);
        std::swap(batch_, incoming_);
        if (batch_.empty()) {
            has_runner_ = false;
            return nullptr;
        }
    }
    return &batch_[at_];
}

void stream_state::pass() noexcept
{
    ++at_;
    // Sequentially consistent with `watch`: either `watch` sees that this item has passed, or this function sees the
    // watcher.
    const auto now = passed_.fetch_add(1, std::memory_order_seq_cst) + 1;
    if (watched_.load(std::memory_order_seq_cst) != 0)
        tell(now);
}

void stream_state::watch(std::uint64_t position, notification n)
{
    {
        const std::scoped_lock lock(watch_mutex_);
        watchers_.push_back({position, n});
        watched_.store(watchers_.size(), std::memory_order_seq_cst);
    }
    if (const auto now = passed_.load(std::memory_order_seq_cst); now >= position)
        tell(now);
}

void stream_state::unwatch(void* argument) noexcept
{
    const std::scoped_lock lock(watch_mutex_);
    std::erase_if(watchers_, [=](const watcher& w) { return w.call.argument == argument; });
    watched_.store(watchers_.size(), std::memory_order_seq_cst);
}

void stream_state::tell(std::uint64_t position) noexcept
{
    // Under the lock, so that no call with its argument is running when `unwatch` returns.
    const std::scoped_lock lock(watch_mutex_);
    const auto due =
        std::partition(watchers_.begin(), watchers_.end(), [=](const watcher& w) { return w.position > position; });
    for (auto w = due; w != watchers_.end(); ++w)
        w->call.function(w->call.argument);
    watchers_.erase(due, watchers_.end());
    watched_.store(watchers_.size(), std::memory_order_seq_cst);
}

} // namespace coaccel::host
