#ifndef COACCEL_DEVICE_DEVICE_STATS_HPP
#define COACCEL_DEVICE_DEVICE_STATS_HPP

#include <coaccel/core/backend.hpp>
#include <coaccel/device/device_state.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace coaccel {

/// How many latencies were within a range. The buckets of all latencies have the same bounds, eight for each power of
/// two.
struct latency_bucket {
    std::chrono::nanoseconds upper{}; ///< The longest latency that it can contain, except for the last bucket.
    std::uint64_t count = 0;          ///< How many it contains.

    friend bool operator==(const latency_bucket&, const latency_bucket&) = default;
};

/// Latencies of the ops of one name, from arrival at the device to the end. An upload counts as the copy that it
/// contains. A `seq` completes once and has its own row, named after its ops: "seq(memory.fill<f32>,
/// memory.copy<f32>)".
struct op_latency {
    std::string op;                 ///< The name of the op, or of the seq.
    std::uint64_t count = 0;        ///< The number of ops that ended.
    std::chrono::nanoseconds p50{}; ///< The median.
    std::chrono::nanoseconds p90{}; ///< Nine of ten took no longer.
    std::chrono::nanoseconds p99{}; ///< 99 of 100 took no longer.
    std::chrono::nanoseconds max{}; ///< The longest.
    /// The sum of all; divided by `count` it is the mean.
    std::chrono::nanoseconds sum{};
    /// The buckets that contain latencies, in ascending order. The differences of two snapshots are the latencies of
    /// the time between them.
    std::vector<latency_bucket> buckets;
};

/// The runs of the plans of one name.
///
/// The counters only grow, also after the plan was unloaded. A run is counted in exactly one of `completed`, `failed`,
/// `cancelled` and `expired`.
struct plan_stats {
    /// The name of its row in device_stats::latencies: "plan encoder" for a plan named "encoder", "plan.run" for plans
    /// without a name.
    std::string op;
    std::uint64_t completed = 0;       ///< Runs that ended without an error.
    std::uint64_t failed = 0;          ///< Runs that ended with an error not counted in the next two.
    std::uint64_t cancelled = 0;       ///< Runs that ended with operation_aborted.
    std::uint64_t expired = 0;         ///< Runs that ended with errc::deadline_exceeded.
    std::uint64_t reruns = 0;          ///< How often a run was started again after it was lost with its context.
    std::uint64_t bytes_to_device = 0; ///< Bytes of inputs that completed runs copied to the device.
    std::uint64_t bytes_to_host = 0;   ///< Bytes of outputs that completed runs copied back.
    std::uint64_t instances = 0;       ///< Instances that are loaded now.
    std::uint64_t running = 0;         ///< Instances that runs use now.
    std::uint64_t waiting = 0;         ///< Runs that wait for an instance now.
    std::uint64_t quarantined = 0;     ///< Plans of this name that are quarantined now.
};

/// The current state and the counters of a device.
///
/// The counters and sums only grow and survive the loss of a context: the difference of two snapshots, divided by the
/// difference of their `at`, is a rate. A call of the device, such as an op, a seq or an upload, is counted in exactly
/// one of `completed`, `failed`, `cancelled` and `expired`.
struct device_stats {
    /// When the snapshot was taken.
    std::chrono::steady_clock::time_point at{};
    device_state state = device_state::starting; ///< The state.
    coaccel::generation generation = 0;          ///< The generation of the latest context.
    std::string backend;                         ///< "cuda" or "host".
    hardware_info hardware;                      ///< The hardware that it uses.
    memory_info memory;                          ///< The memory of the latest context.
    std::uint64_t live_buffers = 0;              ///< Buffers that are not released.
    std::uint64_t queued = 0;                    ///< Calls that wait to be started.
    std::uint64_t in_flight = 0;                 ///< Calls that were started and have not ended.
    /// Calls that ended without an error.
    std::uint64_t completed = 0;
    /// Calls that ended with an error not counted in the next two; refused calls are included.
    std::uint64_t failed = 0;
    /// Calls that ended with operation_aborted.
    std::uint64_t cancelled = 0;
    /// Calls that ended with errc::deadline_exceeded.
    std::uint64_t expired = 0;
    /// Ops of the calls that completed; each op of a seq counts.
    std::uint64_t ops = 0;
    /// Bytes copied from the callers' host memory to the device by calls that completed.
    std::uint64_t bytes_to_device = 0;
    std::uint64_t bytes_to_host = 0; ///< Bytes copied back to the callers' host memory by such calls.
    /// All contexts after the first, including those requested by async_replace.
    std::uint64_t restarts = 0;
    /// Instances of plans that were made by loads, for waiting runs and after the loss of a context. Those that a
    /// standby has made before it took over are not included.
    std::uint64_t plan_instances = 0;
    /// Plans that the standby has loaded, which can run as soon as it takes over.
    std::uint64_t standby_plans = 0;
    /// How often a run of a plan, or an op with retry::idempotent, was started again after it was lost with its
    /// context.
    std::uint64_t reruns = 0;
    /// Runs, ops, and loads of plans that ended a context while nothing else was on it.
    std::uint64_t convicted = 0;
    /// Plans that are quarantined now.
    std::uint64_t quarantined_plans = 0;
    /// Durable buffers that cannot be used until async_trust or async_clear was called for them.
    std::uint64_t suspect_buffers = 0;
    std::vector<op_latency> latencies; ///< One row for each kind of op.
    /// One row for each name of a plan that is loaded or was run.
    std::vector<plan_stats> plans;
};

} // namespace coaccel

#endif
