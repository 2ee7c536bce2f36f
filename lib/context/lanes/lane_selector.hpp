#ifndef COACCEL_CONTEXT_LANES_LANE_SELECTOR_HPP
#define COACCEL_CONTEXT_LANES_LANE_SELECTOR_HPP

#include <coaccel/core/context_options.hpp>
#include <coaccel/core/exec_options.hpp>

namespace coaccel::detail {

/// errc::invalid_argument if the priority is not an enumerator.
COACCEL_DECL error_code bad_priority(const exec_options& options) noexcept;

/// Maps a lane policy and the options of a request to the key of a lane.
class COACCEL_DECL lane_selector {
public:
    static constexpr int caller_lanes = 4;

    explicit lane_selector(lane_policy policy) noexcept : policy_(policy) {}

    /// The number of possible keys.
    std::size_t keys() const noexcept { return (policy_lanes() + caller_lanes) * priority_count; }

    /// The number of lanes of the policy for each priority.
    std::size_t policy_lanes() const noexcept;

    /// errc::invalid_argument if the requested lane or priority does not exist.
    static error_code check(const exec_options& options) noexcept;

    /// Whether choose_chained selects one of the policy's lanes.
    bool is_chained(const exec_options& options) const noexcept
    {
        return policy_.how == lane_policy::kind::chained && options.lane == exec_options::any_lane;
    }

    /// The key of the lane for a request whose first op is from this library. Preconditions: check() accepts the
    /// options, and is_chained() is false.
    std::size_t choose(library lib, const exec_options& options) noexcept;

    /// The key of one of the policy's lanes.
    static std::size_t key_of(std::size_t lane, priority p) noexcept
    {
        return lane * priority_count + static_cast<std::size_t>(p);
    }
    static priority priority_of(std::size_t key) noexcept { return static_cast<priority>(key % priority_count); }

private:
    lane_policy policy_;
    std::size_t next_ = 0;
};

} // namespace coaccel::detail

#endif
