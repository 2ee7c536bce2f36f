#ifndef COACCEL_CORE_EXEC_OPTIONS_HPP
#define COACCEL_CORE_EXEC_OPTIONS_HPP

#include <coaccel/core/backend.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel {

/// What happens to an op when the device has no room for it.
enum class when_full : std::uint8_t {
    /// Wait for room.
    wait,
    /// Complete with errc::queue_full.
    fail,
};

/// What happens to an op that was outstanding when its context died.
enum class retry : std::uint8_t {
    /// It completes with errc::context_lost.
    never,
    /// Running it twice is harmless: the device runs it again on its next context if nothing that it names died with
    /// the previous one, as for an upload. Its deadline does not change.
    idempotent,
};

/// How one op is run. The defaults suit most ops.
struct exec_options {
    using clock = std::chrono::steady_clock;                                   ///< The clock of deadlines.
    static constexpr clock::time_point no_deadline = clock::time_point::max(); ///< No deadline.
    static constexpr int any_lane = -1;                                        ///< The lane policy selects the lane.

    /// The caller's wait ends at this time, with errc::deadline_exceeded. A waiting op is not started. A started op
    /// runs to its end; if it uses the caller's memory, the wait lasts until the device no longer accesses that memory.
    clock::time_point deadline = no_deadline;
    coaccel::priority priority = priority::normal; ///< The priority of its lane.
    /// A lane chosen by the caller, from 0 to 3; these lanes are separate from those of the policy.
    int lane = any_lane;
    coaccel::when_full when_full = when_full::wait; ///< What to do when it cannot start at once.
    coaccel::retry retry = retry::never;            ///< What to do when its context dies.
    /// The id of the trace event that it belongs to, such as the batch of a plan run: an arrow leads from that event to
    /// those of this op. See trace_buffer. 0: none.
    std::uint64_t trace = 0;
};

/// exec_options with a deadline this far from now; no deadline if the sum exceeds the range of the clock.
template <class Rep, class Period>
exec_options within(std::chrono::duration<Rep, Period> time)
{
    using clock = exec_options::clock;
    using seconds = std::chrono::duration<double>;
    const auto now = clock::now();
    // Compared in floating point, because the sum would overflow.
    const seconds reach = clock::time_point::max() - now - std::chrono::seconds(1);
    if (!(seconds(time) < reach))
        return {};
    if (seconds(time) < -reach)
        return {.deadline = clock::time_point::min()};
    return {.deadline = now + std::chrono::duration_cast<clock::duration>(time)};
}

} // namespace coaccel

#endif
