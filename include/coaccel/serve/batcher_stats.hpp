#ifndef COACCEL_SERVE_BATCHER_STATS_HPP
#define COACCEL_SERVE_BATCHER_STATS_HPP

#include <coaccel/core/backend.hpp>
#include <coaccel/telemetry/histogram.hpp>

#include <array>
#include <cstdint>

namespace coaccel::serve {

/// The counters of a batcher. They only grow, except those that say "now". A request is counted in exactly one of
/// `completed`, `failed`, `cancelled`, `expired` and `refused`.
struct batcher_stats {
    std::array<std::uint64_t, priority_count> queued{}; ///< Requests that wait for their batch now, by priority.
    std::uint64_t in_flight = 0;                        ///< Batches that run now.
    std::uint64_t completed = 0;                        ///< Requests that ended without an error.
    std::uint64_t failed = 0;                           ///< Requests whose batch ended with an error.
    std::uint64_t cancelled = 0;                        ///< Requests that ended with operation_aborted.
    std::uint64_t expired = 0;                          ///< Requests that ended with errc::deadline_exceeded.
    std::uint64_t refused = 0;                          ///< Requests that were not accepted for another reason.
    std::uint64_t batches = 0;                          ///< Batches that were started.
    std::uint64_t rows = 0;                             ///< Rows of requests in these batches.
    std::uint64_t padding = 0;                          ///< Rows of padding in these batches.
    std::uint64_t split = 0;                            ///< Batches whose requests ran one by one after a fault.
    std::uint64_t restarts = 0;                         ///< Failures of the function after which the batcher went on.
    telemetry::histogram_snapshot sizes;                ///< Rows of each batch.
    telemetry::histogram_snapshot queue_time;           ///< From the arrival of a request to its batch, in seconds.
    /// Collecting the inputs of a batch, in seconds. If they are copied on another thread, with the wait for it.
    telemetry::histogram_snapshot form_time;
    /// Running a batch, in seconds. Without the copy of the outputs to the callers, which no histogram has.
    telemetry::histogram_snapshot run_time;
};

} // namespace coaccel::serve

#endif
