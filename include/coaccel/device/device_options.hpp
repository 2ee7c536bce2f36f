#ifndef COACCEL_DEVICE_DEVICE_OPTIONS_HPP
#define COACCEL_DEVICE_DEVICE_OPTIONS_HPP

#include <coaccel/actor/restart_policy.hpp>
#include <coaccel/core/context_options.hpp>
#include <coaccel/cuda/cuda_options.hpp>
#include <coaccel/host/host_options.hpp>
#include <coaccel/worker/worker_options.hpp>

#include <chrono>
#include <cstdint>
#include <type_traits>

namespace coaccel {

/// Which hardware a device is.
enum class device_kind : std::uint8_t {
    /// An NVIDIA GPU where there is one with a driver that is new enough; else the CPU. The libraries that some ops
    /// need are not looked for: without them those ops complete with errc::library_missing.
    best,
    /// The CPU.
    host,
    /// An NVIDIA GPU.
    cuda,
};

/// Where the context of a device lives.
enum class isolation : std::uint8_t {
    /// In this process. A GPU that faults is lost to it for good.
    in_process,
    /// In a process of its own, which is replaced when it faults, hangs or dies.
    worker,
};

/// How much work a device takes on.
struct queue_limits {
    /// Ops started and not yet ended. Further ones wait.
    std::uint64_t max_in_flight = 1024;
    /// Host bytes that ops in flight move. One larger than that is not counted; there is at most one such at a time.
    std::uint64_t max_bytes_in_flight = std::uint64_t(1) << 30;
    /// Ops waiting. Further ones complete with errc::queue_full.
    std::uint64_t max_queued = std::uint64_t(1) << 17;
};

/// What a device is and how it behaves. The defaults suit a server.
struct device_options {
    device_kind kind = device_kind::best; ///< A GPU, the CPU, or what there is.
    /// Which GPU, as the driver counts them. A device uses one.
    int ordinal = 0;
    context_options context{}; ///< Lanes, completion, monitoring.
    queue_limits queue{};      ///< How much is started and how much may wait.
    /// What happens when a context dies or refuses to start.
    restart_policy restart{.initial_backoff = std::chrono::milliseconds(10)};
    host_options host{};                                  ///< Of the CPU backend.
    cuda_options cuda{};                                  ///< Of the CUDA backend.
    coaccel::isolation isolation = isolation::in_process; ///< In this process or in one of its own.
    /// Worker processes kept ready to take over, each with its context made; from 0 to 4.
    int standby = 0;
    worker_options worker{}; ///< Of the worker process.
    /// A shared object with functions for plugin::call, such as kernels compiled by nvcc. It is loaded where the
    /// context is; a name without a slash is looked for as the system's loader does. Read when the device is made.
    /// Null: none.
    const char* plugin = nullptr;

    /// errc::invalid_option when something is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

static_assert(std::is_trivially_copyable_v<device_options>);

} // namespace coaccel

#endif
