#include "worker/parent/standby_pool.hpp"

#include "posix/fork_detector.hpp"
#include "posix/scoped_signal_block.hpp"

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
using link_ptr = standby_pool::link_ptr;

bool is_alive(const link_ptr& l)
{
    return !l->is_doomed();
}

bool has_spoken(const link_ptr& l)
{
    return l->replies().has_record();
}

void log_loss(const worker_link& l)
{
    l.log(log_level::warning, "standby lost: " + l.reason().message());
}

/// For a worker that has ended and whose replies have not been read.
bool was_ready(const link_ptr& l)
{
    std::vector<std::byte> record;
    const auto got = l->replies().read(record);
    decoder in(record);
    message_type what{};
    return got && got.value() && in.get(what, message_type::ready, message_type::ready);
}

} // namespace

class standby_pool::state {
public:
    state(int wanted, std::chrono::nanoseconds pause) noexcept
        : wanted_(static_cast<std::size_t>(std::max(wanted, 0))), pause_(pause)
    {}

    ~state();
    /// Replaces the destructor in a forked child.
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
    // Held while a worker is started. Lock order: before mutex_.
    std::mutex starting_;
    // on_end() locks this mutex while the link holds its own lock: code that holds it must not call link functions that
    // lock.
    std::mutex mutex_;
    std::condition_variable changed_;
    starter start_;
    // Number of workers to replace.
    std::size_t died_ = 0;
    clock::time_point next_try_{};
    bool stopping_ = false;
    // Last member: a link may call on_end() until it is destroyed.
    std::deque<link_ptr> links_;
};

standby_pool::state::~state()
{
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable())
        thread_.join();
}

void standby_pool::state::abandon() noexcept
{
    // If a thread of the parent held the mutex at the fork, the state of the links is unknown.
    if (mutex_.try_lock())
        links_.clear();
}

bool standby_pool::state::any()
{
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(links_, is_alive);
}

link_ptr standby_pool::state::take()
{
    link_ptr first;
    {
        // Wait for a worker that is being started.
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

void standby_pool::state::top_up(starter start)
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
    for (const link_ptr& l : ended)
        log_loss(*l);
    if (missing > 0 && !thread_.joinable())
        begin();
    for (; missing > 0 && add(start); --missing) {
    }
}

void standby_pool::state::begin() noexcept
try {
    const detail::scoped_signal_block inherited;
    thread_ = std::thread([this] { run(); });
} catch (const std::system_error&) {
    // Without the thread, workers that end are replaced at the next top_up.
}

void standby_pool::state::on_end(void* self) noexcept
{
    auto* s = static_cast<state*>(self);
    const std::scoped_lock lock(s->mutex_);
    s->changed_.notify_all();
}

void standby_pool::state::run() noexcept
{
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (auto ended = take_ended(); !ended.empty()) {
            lock.unlock();
            for (const link_ptr& l : ended)
                log_loss(*l);
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

void standby_pool::state::replace()
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

/// Requires `starting_`. Returns false if the worker cannot be started.
bool standby_pool::state::add(const starter& start)
{
    auto made = start();
    if (!made)
        return false;
    made.value()->listen({&state::on_end, this});
    const std::scoped_lock lock(mutex_);
    links_.push_back(std::move(made).value());
    // The worker may have ended before listen().
    changed_.notify_all();
    return true;
}

/// Requires the mutex; the caller destroys the result without it.
std::vector<link_ptr> standby_pool::state::take_ended()
{
    const auto ended = std::stable_partition(links_.begin(), links_.end(), is_alive);
    std::vector<link_ptr> all(std::make_move_iterator(ended), std::make_move_iterator(links_.end()));
    links_.erase(ended, links_.end());
    return all;
}

standby_pool::standby_pool(int wanted, std::chrono::nanoseconds pause) : state_(std::make_unique<state>(wanted, pause))
{}

standby_pool::~standby_pool()
{
    // The thread does not exist in this process, and the condition variable that it waits on cannot be destroyed.
    if (detail::forked())
        state_.release()->abandon();
}

bool standby_pool::any() const
{
    return !detail::forked() && state_->any();
}

link_ptr standby_pool::take()
{
    return detail::forked() ? nullptr : state_->take();
}

void standby_pool::top_up(starter start)
{
    if (!detail::forked())
        state_->top_up(std::move(start));
}

void standby_pool::clear()
{
    // A forked child can neither end nor start workers.
    if (!detail::forked())
        state_ = state_->successor();
}

} // namespace coaccel::worker
