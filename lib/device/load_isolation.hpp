#ifndef COACCEL_DEVICE_LOAD_ISOLATION_HPP
#define COACCEL_DEVICE_LOAD_ISOLATION_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace coaccel::detail {

/// How long a suspect, a request or the load of a plan, may keep all other requests from the device: longer than a
/// driver takes to report a fault, and than it takes to find that it hangs.
inline std::chrono::steady_clock::duration longest_isolation(std::chrono::nanoseconds hang_timeout) noexcept
{
    using std::chrono::seconds;
    // A day, because adding a longer time to a time point might overflow.
    const auto found = std::min<std::chrono::nanoseconds>(hang_timeout, std::chrono::hours(24)) + seconds(2);
    return std::max<std::chrono::steady_clock::duration>(seconds(5), found);
}

/// Keeps all other requests from a device while a suspect plan is loaded, so that it is known whether the load ends
/// contexts, but not for longer than a limit. Has no clock.
class load_isolation {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Called in each turn. `suspect`: the next request for plans, or the one on its way, loads a suspect plan.
    void look(bool suspect, time_point now, time_point::duration limit) noexcept
    {
        if (!suspect)
            end_ = time_point::max();
        else if (!beside_ && end_ == time_point::max())
            end_ = now + limit;
    }

    /// Whether others wait for this load.
    bool holds(bool suspect) const noexcept { return suspect && !beside_; }

    /// When to call `expire`.
    time_point end() const noexcept { return end_; }

    /// Returns true if it has waited for other requests, or taken, so long that others may start beside it, and beside
    /// all further loads in this context: otherwise each instance of a plan could stop them for as long.
    bool expire(time_point now) noexcept
    {
        if (now < end_)
            return false;
        end_ = time_point::max();
        beside_ = true;
        return true;
    }

    /// A request for plans has been started. `alone`: as the only one on the device, where it may stay for the whole
    /// limit, however long it has waited for others.
    void started(bool alone, time_point now, time_point::duration limit) noexcept
    {
        alone_ = alone;
        if (alone)
            end_ = now + limit;
        // A context that works may have reported a loss.
        lost_ = {};
    }
    /// Something else has been started.
    void other_started() noexcept { alone_ = false; }

    struct lost_load {
        /// The number of the plan; 0: none was being loaded.
        std::uint64_t plan = 0;
        bool alone = false;
    };

    /// The context has died while the plan was being loaded.
    void lost(std::uint64_t plan) noexcept { lost_ = {plan, alone_}; }
    /// Called once for each context that has died.
    lost_load take_lost() noexcept
    {
        alone_ = false;
        beside_ = false;
        return std::exchange(lost_, {});
    }

private:
    time_point end_ = time_point::max();
    bool beside_ = false;
    bool alone_ = false;
    lost_load lost_;
};

} // namespace coaccel::detail

#endif
