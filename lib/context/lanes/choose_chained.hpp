#ifndef COACCEL_CONTEXT_LANES_CHOOSE_CHAINED_HPP
#define COACCEL_CONTEXT_LANES_CHOOSE_CHAINED_HPP

#include "context/lanes/hazards.hpp"

#include <span>

namespace coaccel::detail {

/// A lane that can be selected.
struct chain_lane {
    /// Its last request.
    point tail;
    /// The number of its requests that have not completed. Zero: the tail has completed, or there is none.
    std::size_t load = 0;
};

/// Selects a lane for lane_policy::chained, among the lanes of one priority, and returns its index.
///
/// A request that must wait for the last request of a lane goes to that lane, which saves the event wait. If it must
/// wait for an earlier request of a lane, it would also wait for all later ones there, so that lane is not preferred.
/// Of several lanes whose last request it waits for, or else of all lanes, it gets the one with the least load. If
/// several have the least load, it gets the first of them: a caller who awaits each op then uses one lane, with one set
/// of library handles and workspaces. Precondition: there is a lane.
COACCEL_DECL std::size_t choose_chained(std::span<const chain_lane> lanes, const frontier& waits) noexcept;

} // namespace coaccel::detail

#endif
