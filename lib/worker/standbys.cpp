#include "worker/standbys.hpp"

#include "core/block_signals.hpp"
#include "worker/fork_guard.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace coaccel::worker {
namespace {

using clock = std::chrono::steady_clock;
using link_ptr = standbys::link_ptr;

bool is_alive(const link_ptr& l)
{
    return !l->is_doomed();
}

bool has_spoken(const link_ptr& l)
{
    return l->replies().has_record();
}

/// Of one that has ended, and that nobody has listened to.
bool was_ready(const link_ptr& l)
{
    std::vector<std::byte> record;
    const auto got = l->replies().read(record);
    decoder in(record);
    verb what{};
    return got && got.value() && in.get(what, verb::ready, verb::ready);
}

} // namespace

class standbys::state {
public:
    state(int wanted, std::chrono::nanoseconds pause) noexcept
        : wanted_(static_cast<std::size_t>(std::max(wanted, 0))), pause_(pause)
    {}

    ~state();
    /// Instead of its end, in a forked child.
    void abandon() noexcept;
    bool any();
    link_ptr take();
    void top_up(starter start);
    std::unique_ptr<state> successor() const { return std::make_unique<state>(static_cast<int>(wanted_), pause_); }

private:
    static void on_end(void* self) noexcept;
    void begin() noexcept;
    void run() noexcept;
    void replace();
    bool add(const starter& start);
    std::vector<link_ptr> take_ended();

    const std::size_t wanted_;
    const std::chrono::nanoseconds pause_;
    std::thread thread_;
    // Held while one is started; before the other.
    std::mutex starting_;
    // Taken by a link that ends, under its own lock: no link that can end may be called under it.
    std::mutex mutex_;
    std::condition_variable changed_;
    starter start_;
    // How many are to be replaced.
    std::size_t died_ = 0;
    clock::time_point next_try_{};
    bool stopping_ = false;
    // Last: the end of one may be told until it is destroyed.
    std::deque<link_ptr> links_;
};

standbys::state::~state()
{
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable())
        thread_.join();
}

void standbys::state::abandon() noexcept
{
    // When a thread of the parent held it at the fork, nobody knows in which state the links are.
    if (mutex_.try_lock())
        links_.clear();
}

bool standbys::state::any()
{
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(links_, is_alive);
}

link_ptr standbys::state::take()
{
    link_ptr first;
    {
        // One that is being started is worth waiting for.
        const std::scoped_lock none_starts(starting_);
        const std::scoped_lock lock(mutex_);
        auto chosen = std::ranges::find_if(links_, [](const link_ptr& l) { return is_alive(l) && has_spoken(l); });
        if (chosen == links_.end())
            chosen = links_.begin();
        if (chosen == links_.end())
            return nullptr;
        first = std::move(*chosen);
        links_.erase(chosen);
    }
    first->listen({});
    return first;
}

void standbys::state::top_up(starter start)
{
    std::vector<link_ptr> ended;
    const std::scoped_lock none_starts(starting_);
    std::size_t missing = 0;
    {
        const std::scoped_lock lock(mutex_);
        start_ = start;
        ended = take_ended();
        died_ = 0;
        missing = wanted_ - links_.size();
    }
    if (missing > 0 && !thread_.joinable())
        begin();
    for (; missing > 0 && add(start); --missing) {
    }
}

void standbys::state::begin() noexcept
try {
    const detail::block_signals inherited;
    thread_ = std::thread([this] { run(); });
} catch (const std::system_error&) {
    // Those that end are replaced at the next top_up, then.
}

void standbys::state::on_end(void* self) noexcept
{
    auto* s = static_cast<state*>(self);
    const std::scoped_lock lock(s->mutex_);
    s->changed_.notify_all();
}

void standbys::state::run() noexcept
{
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (auto ended = take_ended(); !ended.empty()) {
            lock.unlock();
            for (const link_ptr& l : ended)
                l->log(log_level::warning, "standby lost: " + l->reason().message());
            const auto ready = std::ranges::count_if(ended, was_ready);
            ended.clear();
            lock.lock();
            died_ += static_cast<std::size_t>(ready);
        } else if (died_ == 0) {
            changed_.wait(lock);
        } else if (const auto now = clock::now(); now < next_try_) {
            changed_.wait_until(lock, next_try_);
        } else {
            --died_;
            next_try_ = now + pause_;
            lock.unlock();
            replace();
            lock.lock();
        }
    }
}

void standbys::state::replace()
{
    const std::scoped_lock none_starts(starting_);
    starter start;
    {
        const std::scoped_lock lock(mutex_);
        if (stopping_ || links_.size() >= wanted_)
            return;
        start = start_;
    }
    if (add(start))
        return;
    const std::scoped_lock lock(mutex_);
    died_ = 0;
}

/// Under `starting_`. False: it cannot be started.
bool standbys::state::add(const starter& start)
{
    auto made = start();
    if (!made)
        return false;
    made.value()->listen({&state::on_end, this});
    const std::scoped_lock lock(mutex_);
    links_.push_back(std::move(made).value());
    // It may have ended by now.
    changed_.notify_all();
    return true;
}

/// Under the mutex; they are to be destroyed outside.
std::vector<link_ptr> standbys::state::take_ended()
{
    const auto ended = std::stable_partition(links_.begin(), links_.end(), is_alive);
    std::vector<link_ptr> all(std::make_move_iterator(ended), std::make_move_iterator(links_.end()));
    links_.erase(ended, links_.end());
    return all;
}

standbys::standbys(int wanted, std::chrono::nanoseconds pause) : state_(std::make_unique<state>(wanted, pause)) {}

standbys::~standbys()
{
    // Its thread is not in this process, and what that waits for cannot be destroyed.
    if (forked())
        state_.release()->abandon();
}

bool standbys::any() const
{
    return !forked() && state_->any();
}

link_ptr standbys::take()
{
    return forked() ? nullptr : state_->take();
}

void standbys::top_up(starter start)
{
    if (!forked())
        state_->top_up(std::move(start));
}

void standbys::clear()
{
    // In a forked child nothing can be ended, and nothing will be started.
    if (!forked())
        state_ = state_->successor();
}

} // namespace coaccel::worker
