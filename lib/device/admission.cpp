#include "device/admission.hpp"

#include "device/overtaking.hpp"

#include <algorithm>
#include <iterator>

namespace coaccel::detail {
namespace {

// How many waiting requests are examined, so that a turn stays short.
constexpr int look_ahead = 16;

} // namespace

admission::~admission()
{
    forget_in_flight();
    deadlines_.clear();
    for (ordered_requests* set : {&again_, &ready_suspects_})
        set->clear_and_dispose([this](request* r) { queue_.push_back(*r); });
}

error_code admission::offer(request& r, bool open, time_point now) noexcept
{
    if (r.options.deadline <= now)
        return errc::deadline_exceeded;
    if (r.options.when_full == when_full::fail &&
        !(open && !isolating() && fits(r) && may_overtake_all(r) && (!r.pool || r.pool->is_open())))
        return errc::queue_full;
    if (queued_ >= limits_.max_queued)
        return errc::queue_full;
    if (r.pool && !r.pool->is_open())
        r.pool->park(r);
    else {
        if (r.pool)
            r.instance = r.pool->take();
        queue_.push_back(r);
    }
    note_waiting(r);
    return {};
}

error_code admission::offer_alone(request& r, time_point now) noexcept
{
    if (r.options.deadline <= now)
        return errc::deadline_exceeded;
    // Runs that wait behind it must not have all instances, because they start after it.
    if (!r.pool->has_free())
        (void)take_back_instance(*r.pool);
    put_back(r, suspicion::suspect);
    return {};
}

/// A run that has not been started gives its instance back, and waits for another one.
bool admission::take_back_instance(instance_pool& pool) noexcept
{
    request* holder = nullptr;
    for (async_op_base* p = queue_.front(); p; p = async_op_list::after(*p))
        if (auto& r = static_cast<request&>(*p); r.pool == &pool)
            holder = &r;
    if (holder) {
        queue_.remove(*holder);
    } else {
        const auto found = std::ranges::find(again_, &pool, &request::pool);
        if (found == again_.end())
            return false;
        holder = &*found;
        again_.erase(found);
    }
    overtaking_.reset();
    pool.add(holder->instance);
    pool.park(*holder);
    return true;
}

void admission::stop_isolating_waiting()
{
    // The next suspect does not wait for them either.
    for (const request& r : started_)
        if (std::ranges::find(beside_, &r) == beside_.end())
            beside_.push_back(&r);
    while (!ready_suspects_.empty()) {
        request& r = *ready_suspects_.begin();
        ready_suspects_.erase(ready_suspects_.begin());
        clear_suspicion(r);
        again_.insert(r);
    }
    for (instance_pool* pool : pools_)
        while (!pool->waiting().empty() && pool->waiting().begin()->suspicion != suspicion::none) {
            request& r = *pool->waiting().begin();
            r.pool->unpark(r);
            clear_suspicion(r);
            r.pool->park(r);
        }
    overtaking_.reset();
}

/// Runs that waited for an instance go on, before requests that arrived later. With a common queue these may be runs of
/// another plan.
void admission::unpark(instance_pool& pool) noexcept
{
    while (!pool.waiting().empty()) {
        request& r = *pool.waiting().begin();
        if (!r.pool->has_free())
            return;
        r.pool->unpark(r);
        r.instance = r.pool->take();
        set_ready(r);
    }
}

void admission::set_ready(request& r) noexcept
{
    (r.suspicion == suspicion::none ? again_ : ready_suspects_).insert(r);
    overtaking_.reset();
}

void admission::add_instance(instance_pool& pool, std::uint32_t instance) noexcept
{
    pool.add(instance);
    unpark(pool);
}

void admission::give_back_instance(request& r) noexcept
{
    if (r.pool)
        add_instance(*r.pool, r.instance);
}

void admission::forget_instances() noexcept
{
    overtaking_.reset();
    for (instance_pool* pool : pools_)
        pool->clear();
    park_all(again_);
    park_all(ready_suspects_);
    for (async_op_base* p = queue_.front(); p;) {
        auto& r = static_cast<request&>(*p);
        p = async_op_list::after(r);
        if (!r.pool)
            continue;
        queue_.remove(r);
        r.pool->park(r);
    }
}

void admission::park_all(ordered_requests& from) noexcept
{
    for (auto it = from.begin(); it != from.end();) {
        request& r = *it++;
        if (!r.pool)
            continue;
        from.erase(from.iterator_to(r));
        r.pool->park(r);
    }
}

bool admission::would_refuse(const request& r) const noexcept
{
    return queued_ >= limits_.max_queued || (queued_ > 0 && r.options.when_full == when_full::fail);
}

void admission::put_back(request& r, suspicion how) noexcept
{
    r.suspicion = how;
    ++suspects_;
    if (r.pool)
        r.pool->park(r);
    else
        set_ready(r);
    note_waiting(r);
    if (r.pool)
        unpark(*r.pool);
}

void admission::stop_isolating(request& r)
{
    beside_.push_back(&r);
    clear_suspicion(r);
}

void admission::clear_suspicion(request& r) noexcept
{
    if (r.suspicion == suspicion::none)
        return;
    r.suspicion = suspicion::none;
    --suspects_;
}

void admission::note_waiting(request& r) noexcept
{
    r.queued = true;
    ++queued_;
    overtaking_.reset();
    if (r.options.deadline != exec_options::no_deadline)
        deadlines_.insert(r);
}

/// The one that arrived first of these two; each may be the end.
request* admission::earlier(request* in_queue, ordered_requests::iterator in_again) noexcept
{
    if (in_again == again_.end())
        return in_queue;
    return in_queue && in_queue->sequence < in_again->sequence ? in_queue : &*in_again;
}

/// Called only for the first waiting requests, so that few of the queue arrived before `r`.
request* admission::after(request& r) noexcept
{
    if (!r.by_sequence.is_linked())
        return earlier(static_cast<request*>(async_op_list::after(r)), again_.upper_bound(r));
    auto* in_queue = static_cast<request*>(queue_.front());
    while (in_queue && in_queue->sequence < r.sequence)
        in_queue = static_cast<request*>(async_op_list::after(*in_queue));
    return earlier(in_queue, std::next(again_.iterator_to(r)));
}

request* admission::find_next(order how) noexcept
{
    if (isolating())
        return occupied() ? nullptr : front();
    request* first = front();
    if (!first || fits(*first))
        return first;
    if (how == order::strict || in_flight_ >= limits_.max_in_flight)
        return nullptr;
    if (!overtaking_)
        overtaking_ = find_overtaking();
    return *overtaking_;
}

request* admission::find_overtaking() noexcept
{
    request* first = front();
    request* r = after(*first);
    for (int n = 1; r && n < look_ahead; ++n, r = after(*r)) {
        if (!may_overtake(*r))
            continue;
        const request* before = first;
        while (before != r && !conflict(*before, *r))
            before = after(const_cast<request&>(*before));
        if (before == r)
            return r;
    }
    return nullptr;
}

/// Whether the request could start before all waiting requests.
bool admission::may_overtake_all(const request& r) noexcept
{
    if (queued_ == 0)
        return true;
    if (queued_ >= look_ahead || !may_overtake(r) || find_next(order::overtaking))
        return false;
    for (request* before = front(); before; before = after(*before))
        if (conflict(*before, r))
            return false;
    return true;
}

bool admission::fits(const request& r) const noexcept
{
    if (in_flight_ >= limits_.max_in_flight)
        return false;
    return is_oversize(r) ? oversize_ == 0 : r.bytes <= limits_.max_bytes_in_flight - bytes_;
}

void admission::count(const request& r) noexcept
{
    ++in_flight_;
    if (is_oversize(r))
        ++oversize_;
    else
        bytes_ += r.bytes;
}

request* admission::next(order how) noexcept
{
    request* r = find_next(how);
    if (!r)
        return nullptr;
    // It keeps its deadline, which ends the caller's wait even after the request has started.
    unlink(*r);
    started_.push_back(*r);
    count(*r);
    return r;
}

void admission::finished(request& r) noexcept
{
    forget_deadline(r);
    clear_suspicion(r);
    if (!beside_.empty())
        std::erase(beside_, &r);
    started_.erase(started_.iterator_to(r));
    --in_flight_;
    overtaking_.reset();
    if (is_oversize(r))
        --oversize_;
    else
        bytes_ -= r.bytes;
    give_back_instance(r);
}

request* admission::expired(time_point now) noexcept
{
    if (deadlines_.empty() || deadlines_.begin()->options.deadline > now)
        return nullptr;
    request* r = &*deadlines_.begin();
    if (r->queued)
        remove(*r);
    else
        forget_deadline(*r);
    return r;
}

admission::time_point admission::first_deadline() const noexcept
{
    return deadlines_.empty() ? exec_options::no_deadline : deadlines_.begin()->options.deadline;
}

void admission::remove(request& r) noexcept
{
    const bool was_parked = r.parked;
    forget_deadline(r);
    unlink(r);
    clear_suspicion(r);
    if (!was_parked)
        give_back_instance(r);
    else
        // Runs of other plans may have waited only for this one.
        unpark(*r.pool);
}

void admission::forget_deadline(request& r) noexcept
{
    if (r.by_deadline.is_linked())
        deadlines_.erase(deadlines_.iterator_to(r));
}

void admission::unlink(request& r) noexcept
{
    overtaking_.reset();
    if (r.parked)
        r.pool->unpark(r);
    else if (r.by_sequence.is_linked())
        (r.suspicion == suspicion::none ? again_ : ready_suspects_).erase(ordered_requests::s_iterator_to(r));
    else
        queue_.remove(r);
    r.queued = false;
    --queued_;
}

void admission::forget_in_flight() noexcept
{
    started_.clear_and_dispose([this](request* r) {
        forget_deadline(*r);
        clear_suspicion(*r);
    });
    beside_.clear();
    in_flight_ = bytes_ = oversize_ = 0;
}

request* admission::pop() noexcept
{
    request* r = ready_suspects_.empty() ? oldest() : &*ready_suspects_.begin();
    if (r)
        remove(*r);
    for (auto pool = pools_.begin(); !r && pool != pools_.end(); ++pool)
        r = pop(**pool);
    return r;
}

request* admission::pop(instance_pool& pool) noexcept
{
    for (request& r : pool.waiting())
        if (r.pool == &pool) {
            remove(r);
            return &r;
        }
    return nullptr;
}

} // namespace coaccel::detail
