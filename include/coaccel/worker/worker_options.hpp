#ifndef COACCEL_WORKER_WORKER_OPTIONS_HPP
#define COACCEL_WORKER_WORKER_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace coaccel {

/// How the worker process of a device is run and watched. Texts are read when the device is made.
struct worker_options {
    /// The program, absolute or from where the process is when the device is made; null: what the environment variable
    /// COACCEL_WORKER names, else the coaccel-worker that belongs to this library.
    const char* program = nullptr;
    /// Memory shared with the worker: copies go through it, and pinned buffers live in seven eighths of it.
    std::uint64_t staging_bytes = std::uint64_t(64) << 20;
    /// How long a worker may take to become ready.
    std::chrono::nanoseconds start_timeout = std::chrono::seconds(30);
    /// A worker that gives no sign of life for this long is ended. Zero: never.
    std::chrono::nanoseconds heartbeat = std::chrono::seconds(5);
    /// How long each side looks for the other's messages before it sleeps. With completion::adaptive this one also
    /// looks when a reply is due. Zero: they sleep at once.
    std::chrono::nanoseconds spin = std::chrono::microseconds(50);
    /// The most bytes of private memory of the worker (RLIMIT_DATA). Zero: no limit of its own.
    std::uint64_t max_data_bytes = 0;
    /// Whether a worker that crashes leaves a core dump, under the limits that this process has (RLIMIT_CORE). There is
    /// the data of requests in it.
    bool core_dumps = false;
    /// Gets all messages about the worker and what it writes to its standard error, of any level, instead of the sink
    /// of set_log_sink(). Called like that sink. Null: they go to the sink, the lines of the worker as warnings.
    ///
    /// Of a worker that writes much, 1000 lines pass at once and then 100 a second; the others are counted.
    void (*log)(std::string_view line) = nullptr;

    /// errc::invalid_option when something is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
