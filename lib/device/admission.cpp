#include "device/admission.hpp"

#include "device/overtaking.hpp"

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
    again_.clear_and_dispose([this](request* r) { queue_.push_back(*r); });
}

error_code admission::offer(request& r, bool open, time_point now) noexcept
{
    if (r.options.deadline <= now)
        return errc::deadline_exceeded;
    if (r.options.when_full == when_full::fail && !(open && fits(r) && may_overtake_all(r)))
        return errc::queue_full;
    if (queued_ >= limits_.max_queued)
        return errc::queue_full;
    queue_.push_back(r);
    note_waiting(r);
    return {};
}

bool admission::would_refuse(const request& r) const noexcept
{
    return queued_ >= limits_.max_queued || (queued_ > 0 && r.options.when_full == when_full::fail);
}

void admission::put_back(request& r) noexcept
{
    again_.insert(r);
    note_waiting(r);
}

void admission::note_waiting(request& r) noexcept
{
    r.queued = true;
    ++queued_;
    overtaking_.reset();
    if (r.options.deadline != exec_options::no_deadline)
        deadlines_.insert(r);
}

request* admission::after(request& r) noexcept
{
    if (!r.by_sequence.is_linked())
        return static_cast<request*>(async_op_list::after(r));
    const auto next = std::next(again_.iterator_to(r));
    return next == again_.end() ? static_cast<request*>(queue_.front()) : &*next;
}

request* admission::find_next(order how) noexcept
{
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
    started_.erase(started_.iterator_to(r));
    --in_flight_;
    overtaking_.reset();
    if (is_oversize(r))
        --oversize_;
    else
        bytes_ -= r.bytes;
}

request* admission::expired(time_point now) noexcept
{
    if (deadlines_.empty() || deadlines_.begin()->options.deadline > now)
        return nullptr;
    request* r = &*deadlines_.begin();
    forget_deadline(*r);
    if (r->queued)
        unlink(*r);
    return r;
}

admission::time_point admission::first_deadline() const noexcept
{
    return deadlines_.empty() ? exec_options::no_deadline : deadlines_.begin()->options.deadline;
}

void admission::remove(request& r) noexcept
{
    forget_deadline(r);
    unlink(r);
}

void admission::forget_deadline(request& r) noexcept
{
    if (r.by_deadline.is_linked())
        deadlines_.erase(deadlines_.iterator_to(r));
}

void admission::unlink(request& r) noexcept
{
    overtaking_.reset();
    if (r.by_sequence.is_linked())
        again_.erase(again_.iterator_to(r));
    else
        queue_.remove(r);
    r.queued = false;
    --queued_;
}

void admission::forget_in_flight() noexcept
{
    started_.clear_and_dispose([this](request* r) { forget_deadline(*r); });
    in_flight_ = bytes_ = oversize_ = 0;
}

request* admission::pop() noexcept
{
    request* r = front();
    if (r)
        remove(*r);
    return r;
}

} // namespace coaccel::detail
