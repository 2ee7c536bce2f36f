#include "worker/pulse.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::worker {
namespace {

// A worker beats several times in the span after which it is taken for dead.
constexpr int beats_per_span = 4;
constexpr auto slowest_beat = std::chrono::milliseconds(500);

} // namespace

std::chrono::nanoseconds pulse::beat_of(std::chrono::nanoseconds heartbeat) noexcept
{
    const auto span = heartbeat / beats_per_span;
    return heartbeat.count() > 0 ? std::min<std::chrono::nanoseconds>(span, slowest_beat) : slowest_beat;
}

errc pulse::look(std::uint64_t beats, time_point now) noexcept
{
    // Of a look that comes late only the usual time counts: while the machine or the container stood still, the worker
    // could give no sign either.
    silence_ += std::min<std::chrono::nanoseconds>(now - std::exchange(last_look_, now), look_every_);
    if (std::exchange(beats_, beats) != beats)
        silence_ = {};
    // It beats only once it serves; until then the time to start is what counts.
    if (beats == 0)
        return silence_ >= start_timeout_ ? errc::worker_late : errc{};
    return heartbeat_.count() > 0 && silence_ >= heartbeat_ ? errc::worker_hung : errc{};
}

} // namespace coaccel::worker
