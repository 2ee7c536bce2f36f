#include "worker/parent/heartbeat_monitor.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::worker {
namespace {

// A worker beats several times within the span after which it counts as dead.
constexpr int beats_per_span = 4;
constexpr auto slowest_beat = std::chrono::milliseconds(500);

} // namespace

std::chrono::nanoseconds heartbeat_monitor::beat_of(std::chrono::nanoseconds heartbeat) noexcept
{
    const auto span = heartbeat / beats_per_span;
    return heartbeat.count() > 0 ? std::min<std::chrono::nanoseconds>(span, slowest_beat) : slowest_beat;
}

errc heartbeat_monitor::look(std::uint64_t beats, time_point now) noexcept
{
    // A late check counts only as much silence as one check interval: while the machine or the container was stopped,
    // the worker could not beat either.
    silence_ += std::min<std::chrono::nanoseconds>(now - std::exchange(last_look_, now), look_every_);
    if (std::exchange(beats_, beats) != beats)
        silence_ = {};
    // A worker beats only once it has made its context; until then the start timeout applies.
    if (beats == 0)
        return silence_ >= start_timeout_ ? errc::worker_late : errc{};
    return heartbeat_.count() > 0 && silence_ >= heartbeat_ ? errc::worker_hung : errc{};
}

} // namespace coaccel::worker
