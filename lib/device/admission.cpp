#include "device/admission.hpp"

namespace coaccel::detail {

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
    const bool at_once = open && queued_ == 0 && fits(r);
    if (r.options.when_full == when_full::fail && !at_once)
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
    if (r.options.deadline != exec_options::no_deadline)
        deadlines_.insert(r);
}

bool admission::has_next() noexcept
{
    const request* r = front();
    return r && fits(*r);
}

bool admission::fits(const request& r) const noexcept
{
    if (in_flight_ >= limits_.max_in_flight)
        return false;
    return in_flight_ == 0 || r.bytes == 0 ||
           (bytes_ <= limits_.max_bytes_in_flight && r.bytes <= limits_.max_bytes_in_flight - bytes_);
}

request* admission::next() noexcept
{
    if (!has_next())
        return nullptr;
    request* r = front();
    // It keeps its deadline: that ends the wait of its caller also when it has been started.
    unlink(*r);
    started_.push_back(*r);
    ++in_flight_;
    bytes_ += r->bytes;
    return r;
}

void admission::finished(request& r) noexcept
{
    forget_deadline(r);
    started_.erase(started_.iterator_to(r));
    --in_flight_;
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
    in_flight_ = bytes_ = 0;
}

request* admission::pop() noexcept
{
    request* r = front();
    if (r)
        remove(*r);
    return r;
}

} // namespace coaccel::detail
