#ifndef COACCEL_ACTOR_SUPERVISOR_STATS_HPP
#define COACCEL_ACTOR_SUPERVISOR_STATS_HPP

#include <cstdint>

namespace coaccel {

/// The state and the counters of a supervisor. The counters only grow.
struct supervisor_stats {
    bool running = false;          ///< Whether it supervises now.
    std::uint64_t children = 0;    ///< Its children, whether they run or not.
    std::uint64_t failures = 0;    ///< Failures that its children have reported.
    std::uint64_t restarts = 0;    ///< Starts of a child after a failure, its own or that of another child.
    std::uint64_t escalations = 0; ///< Failures that it has passed to its own supervisor, or that have ended it.
};

} // namespace coaccel

#endif
