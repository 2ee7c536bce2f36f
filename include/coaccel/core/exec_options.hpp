#ifndef COACCEL_CORE_EXEC_OPTIONS_HPP
#define COACCEL_CORE_EXEC_OPTIONS_HPP

#include <coaccel/core/backend.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel {

/// What an op does when the device has no room for it.
enum class when_full : std::uint8_t {
    /// Wait for room.
    wait,
    /// Complete with errc::queue_full.
    fail,
};

/// What becomes of an op that was outstanding when its context died.
enum class retry : std::uint8_t {
    /// It completes with errc::context_lost.
    never,
    /// Running it twice does no harm: the device runs it again on its next context when nothing that it names died
    /// with the last one, as with an upload. Its deadline stays what it was.
    idempotent,
};

/// How one op is to be run. The defaults suit most.
struct exec_options {
    using clock = std::chrono::steady_clock;                                   ///< Of deadlines.
    static constexpr clock::time_point no_deadline = clock::time_point::max(); ///< Never.
    static constexpr int any_lane = -1;                                        ///< As the lane policy decides.

    /// The caller's wait ends by then, with errc::deadline_exceeded. An op that waits is not started; one that was
    /// started runs to its end, and when it uses memory of the caller's, the wait lasts until the device has left that.
    clock::time_point deadline = no_deadline;
    coaccel::priority priority = priority::normal; ///< Of the lane it runs on.
    /// A lane of the caller's choice, from 0 to 3; these are apart from the lanes of the policy.
    int lane = any_lane;
    coaccel::when_full when_full = when_full::wait; ///< What to do when it cannot start at once.
    coaccel::retry retry = retry::never;            ///< What to do when its context dies.
};

/// exec_options with a deadline this far from now; no deadline when that is beyond what the clock can count.
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
