#include "worker/parent/reply_watch.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::worker {
namespace {

using std::chrono::nanoseconds;

constexpr int looks_per_limit = 8;
constexpr nanoseconds most_often = std::chrono::milliseconds(1);
// An unlimited duration could not be added to a time point.
constexpr nanoseconds longest = std::chrono::hours(24 * 365);

} // namespace

reply_watch::reply_watch(nanoseconds limit) noexcept
    : limit_(std::clamp(limit, nanoseconds(0), longest)), look_every_(std::max(limit_ / looks_per_limit, most_often))
{}

nanoseconds reply_watch::limit_for(nanoseconds hang_timeout, nanoseconds start_timeout) noexcept
{
    if (hang_timeout <= nanoseconds(0))
        return nanoseconds(0);
    return std::min(hang_timeout, longest) + std::clamp(start_timeout, nanoseconds(0), longest);
}

bool reply_watch::look(bool waiting, bool answered, time_point now) noexcept
{
    if (limit_ == nanoseconds(0))
        return false;
    // A late check counts only as much silence as one check interval: while the machine or the container was stopped,
    // or the executor did not run, the silence says nothing about the worker.
    const auto passed = std::min<nanoseconds>(now - std::exchange(last_look_, now), look_every_);
    if (waiting && waiting_ && !answered)
        silence_ += std::max(passed, nanoseconds(0));
    else
        silence_ = {};
    waiting_ = waiting;
    return silence_ >= limit_;
}

reply_watch::time_point reply_watch::next_look() const noexcept
{
    return waiting_ ? last_look_ + look_every_ : time_point::max();
}

} // namespace coaccel::worker
