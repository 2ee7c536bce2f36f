#ifndef COACCEL_ACTOR_ACTOR_STATS_HPP
#define COACCEL_ACTOR_ACTOR_STATS_HPP

#include <cstdint>

namespace coaccel {

/// The counters of an actor. They only grow.
struct actor_stats {
    std::uint64_t messages = 0; ///< Messages that its behaviour was given, those with which it failed included.
    std::uint64_t failures = 0; ///< Messages with which it failed, and calls of the factory that threw.
    std::uint64_t starts = 0;   ///< How often it was started; all but the first are restarts.
};

} // namespace coaccel

#endif
