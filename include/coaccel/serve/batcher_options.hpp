#ifndef COACCEL_SERVE_BATCHER_OPTIONS_HPP
#define COACCEL_SERVE_BATCHER_OPTIONS_HPP

#include <coaccel/actor/restart_policy.hpp>
#include <coaccel/core/backend.hpp>
#include <coaccel/core/error.hpp>
#include <coaccel/device/plan_options.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace coaccel {

class trace_buffer;

} // namespace coaccel

namespace coaccel::serve {

/// When a batch that could still grow is started.
enum class delay_rule : std::uint8_t {
    /// At once if no batch is running. Otherwise when the last running batch ends, or after max_delay.
    adaptive,
    /// After max_delay, also if no batch is running.
    fixed,
};

/// The order in which requests complete.
enum class completion_order : std::uint8_t {
    any, ///< Requests complete when their batch has ended, and urgent requests run first.
    /// In the order of arrival, except those that are cancelled, refused or late. Priorities have no effect.
    arrival,
};

/// How a batcher forms batches. The size of a request, and of a batch, is counted in rows: most requests have one.
///
/// Exceptions: check() does not throw; copying throws std::bad_alloc.
struct batcher_options {
    /// In messages, statistics and metrics.
    std::string name = "batcher";
    /// The largest batch. 0: the size of the largest plan; for functions 64.
    std::uint32_t max_rows = 0;
    /// Sizes at which a batch starts without waiting for further requests, with the largest one that is reached. A
    /// batch of max_rows always does.
    std::vector<std::uint32_t> preferred{};
    /// How long a request waits for others while it could start.
    std::chrono::nanoseconds max_delay = std::chrono::milliseconds(1);
    delay_rule delay = delay_rule::adaptive; ///< When a batch starts that could still grow.
    /// How much of a batch may be padding if the next smaller plan, filled, takes less time for each row. In [0, 1].
    double max_padding = 0.5;
    /// Batches that run at the same time on each device, or in the function. From 1 to 64.
    int max_in_flight = 4;
    /// Requests of each priority (low, normal, high) that wait for their batch. Further requests wait for room, or
    /// complete with errc::queue_full if their exec_options::when_full says so. Each at least 1.
    std::array<std::uint64_t, priority_count> max_queued{4096, 4096, 4096};
    /// Requests of each priority that wait for room; further ones complete with errc::queue_full.
    std::uint64_t max_waiting = std::uint64_t(1) << 16;
    completion_order order = completion_order::any; ///< The order in which requests complete.
    /// How long a function may take for a batch before it is cancelled, and its requests complete with
    /// errc::deadline_exceeded; zero: no limit. For plans it has no effect: a device has limits of its own, such as
    /// context_options::hang_timeout.
    std::chrono::nanoseconds run_limit{0};
    /// What happens when the function fails: when it throws, takes longer than run_limit, or answers with the wrong
    /// number of replies. After a restart the batcher goes on; without one it has failed, and its requests complete
    /// with errc::actor_stopped. Errors that the function returns are for the callers and do not count.
    restart_policy restart{.initial_backoff = std::chrono::milliseconds(1)};
    /// Gets an event for each request and each batch, with arrows from request to batch to run. The batcher shares the
    /// ownership. Null: none.
    trace_buffer* trace = nullptr;
    /// How devices load the plans. `instances` and `initial` are set by the batcher.
    plan_options plan{};

    /// errc::invalid_option if an option is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel::serve

#endif
