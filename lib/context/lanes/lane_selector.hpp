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

    /// errc::invalid_argument if the requested lane or priority does not exist.
    result<std::size_t> choose(library lib, const exec_options& options) noexcept;

    static priority priority_of(std::size_t key) noexcept { return static_cast<priority>(key % priority_count); }

private:
    std::size_t policy_lanes() const noexcept;

    lane_policy policy_;
    std::size_t next_ = 0;
};

} // namespace coaccel::detail

#endif
