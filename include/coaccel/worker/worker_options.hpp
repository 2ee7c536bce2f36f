#ifndef COACCEL_WORKER_WORKER_OPTIONS_HPP
#define COACCEL_WORKER_WORKER_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace coaccel {

/// How the worker process of a device is run and monitored. Strings are read when the device is created.
struct worker_options {
    /// The program: an absolute path, or one relative to the working directory when the device is created. Null: the
    /// path in the environment variable COACCEL_WORKER, otherwise the coaccel-worker that belongs to this library.
    const char* program = nullptr;
    /// Bytes of memory shared with the worker: copies go through it, and pinned buffers can use seven eighths of it.
    std::uint64_t staging_bytes = std::uint64_t(64) << 20;
    /// The maximum time for a worker to become ready.
    std::chrono::nanoseconds start_timeout = std::chrono::seconds(30);
    /// A worker that sends no heartbeat for this long is killed. Zero: never.
    std::chrono::nanoseconds heartbeat = std::chrono::seconds(5);
    /// How long each side polls for the other's messages before it sleeps. With completion::adaptive this process also
    /// polls when a reply is due. Zero: no polling.
    std::chrono::nanoseconds spin = std::chrono::microseconds(50);
    /// The maximum bytes of the worker's private memory (RLIMIT_DATA). Zero: no separate limit.
    std::uint64_t max_data_bytes = 0;
    /// Whether a worker that crashes leaves a core dump, within this process's limit (RLIMIT_CORE). A core dump
    /// contains the data of requests.
    bool core_dumps = false;
    /// Receives all messages about the worker and its output on the standard error, of any level, instead of the sink
    /// of set_log_sink(). Called like that sink. Null: they go to the sink, the worker's output as warnings.
    ///
    /// The worker's output is limited to bursts of 1000 lines and 100 lines per second; further lines are only counted.
    void (*log)(std::string_view line) = nullptr;

    /// errc::invalid_option if an option is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
