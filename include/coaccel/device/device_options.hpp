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

class trace_buffer;

/// The kind of hardware that a device uses.
enum class device_kind : std::uint8_t {
    /// An NVIDIA GPU if there is one with a sufficiently new driver; otherwise the CPU. Libraries that only some ops
    /// need are not checked: without them those ops complete with errc::library_missing.
    best,
    /// The CPU.
    host,
    /// An NVIDIA GPU.
    cuda,
};

/// Where the context of a device runs.
enum class isolation : std::uint8_t {
    /// In this process. After a GPU fault this process cannot use the GPU again.
    in_process,
    /// In a separate process, which is replaced when it faults, hangs or dies.
    worker,
};

/// Limits on the work that a device accepts.
struct queue_limits {
    /// Ops that are started and have not ended. Further ops wait.
    std::uint64_t max_in_flight = 1024;
    /// Host bytes that ops in flight transfer. An op larger than this is not counted; at most one such op is in flight.
    std::uint64_t max_bytes_in_flight = std::uint64_t(1) << 30;
    /// Waiting ops. Further ops complete with errc::queue_full.
    std::uint64_t max_queued = std::uint64_t(1) << 17;
};

/// The hardware and the behaviour of a device. The defaults suit a server.
struct device_options {
    device_kind kind = device_kind::best; ///< A GPU, the CPU, or the best available.
    /// The GPU's index in the driver's numbering. A device uses one GPU.
    int ordinal = 0;
    context_options context{}; ///< Lanes, completion, monitoring.
    queue_limits queue{};      ///< Limits on started and waiting ops.
    /// What happens when a context dies or fails to start.
    restart_policy restart{.initial_backoff = std::chrono::milliseconds(10)};
    host_options host{};                                  ///< Options of the CPU backend.
    cuda_options cuda{};                                  ///< Options of the CUDA backend.
    coaccel::isolation isolation = isolation::in_process; ///< In this process or in a worker process.
    /// Worker processes kept ready to take over, each with a context; from 0 to 4. Not 0: only with isolation::worker.
    int standby = 0;
    worker_options worker{}; ///< Options of the worker process.
    /// A shared object with functions for plugin::call, such as kernels compiled by nvcc. It is loaded in the process
    /// of the context; a name without a slash is searched for like a library of the system's loader. Read when the
    /// device is created. Null: none.
    const char* plugin = nullptr;
    /// Gets an event for each request and fault of the device, which shares the ownership of it from its creation on.
    /// A plain pointer keeps the options trivially copyable. Null: no events.
    trace_buffer* trace = nullptr;

    /// errc::invalid_option if an option is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

static_assert(std::is_trivially_copyable_v<device_options>);

} // namespace coaccel

#endif
