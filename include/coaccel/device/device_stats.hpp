#ifndef COACCEL_DEVICE_DEVICE_STATS_HPP
#define COACCEL_DEVICE_DEVICE_STATS_HPP

#include <coaccel/core/backend.hpp>
#include <coaccel/device/device_state.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace coaccel {

/// How long the ops of one name took, from their arrival at the device to their end. An upload counts as the copy in
/// it, a `seq` as its first op.
struct op_latency {
    std::string op;
    std::uint64_t count = 0;
    std::chrono::nanoseconds p50{};
    std::chrono::nanoseconds p90{};
    std::chrono::nanoseconds p99{};
    std::chrono::nanoseconds max{};
};

/// What a device is doing and has done.
struct device_stats {
    device_state state = device_state::starting;
    coaccel::generation generation = 0;
    std::string backend;
    hardware_info hardware;
    memory_info memory;
    std::uint64_t live_buffers = 0;
    std::uint64_t queued = 0;
    std::uint64_t in_flight = 0;
    std::uint64_t completed = 0;
    /// With an error other than the two below.
    std::uint64_t failed = 0;
    /// With operation_aborted.
    std::uint64_t cancelled = 0;
    /// With errc::deadline_exceeded.
    std::uint64_t expired = 0;
    /// Every context after the first, also those asked for by async_replace.
    std::uint64_t restarts = 0;
    std::vector<op_latency> latencies;
};

} // namespace coaccel

#endif
