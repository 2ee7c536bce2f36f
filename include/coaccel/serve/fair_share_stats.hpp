#ifndef COACCEL_SERVE_FAIR_SHARE_STATS_HPP
#define COACCEL_SERVE_FAIR_SHARE_STATS_HPP

#include <coaccel/telemetry/histogram.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace coaccel::serve {

/// What happened to requests. The numbers only grow, except those that say "now". A request is counted in exactly one
/// of `started`, `cancelled`, `expired` and `refused`.
struct turn_counts {
    std::uint64_t queued = 0;                ///< Requests that wait for their turn now.
    std::uint64_t running = 0;               ///< Turns that have not ended now.
    std::uint64_t started = 0;               ///< Requests that got a turn.
    std::uint64_t cancelled = 0;             ///< Requests that ended with operation_aborted.
    std::uint64_t expired = 0;               ///< Requests that ended with errc::deadline_exceeded.
    std::uint64_t refused = 0;               ///< Requests that ended with another error.
    std::chrono::nanoseconds device_time{0}; ///< The device time that ended turns were charged.
};

/// One tenant of a fair_share.
struct tenant_stats {
    std::string name;                     ///< Its name.
    bool configured = false;              ///< Whether it is in fair_share_options::tenants.
    std::uint32_t weight = 1;             ///< Its weight.
    turn_counts counts;                   ///< Its requests, since it is remembered.
    std::chrono::nanoseconds estimate{0}; ///< What its next request is expected to take.
};

/// The counters of a fair_share.
struct fair_share_stats {
    turn_counts all;                          ///< All tenants together, also those that were forgotten.
    std::uint64_t forgotten = 0;              ///< How often a tenant was forgotten.
    telemetry::histogram_snapshot queue_time; ///< From the arrival of a request to its turn, in seconds.
    std::vector<tenant_stats> tenants;        ///< The tenants that are remembered, by name.
};

} // namespace coaccel::serve

#endif
