#ifndef COACCEL_CORE_CONTEXT_OPTIONS_HPP
#define COACCEL_CORE_CONTEXT_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel {

/// How the ops of a device are distributed over lanes (streams). Ops on one lane run one after another; across lanes
/// the device orders only ops that share elements of a buffer.
struct lane_policy {
    /// How the lane of an op is selected.
    enum class kind : std::uint8_t { per_library, single, pooled, chained };

    static constexpr int max_pooled = 8; ///< The maximum of `count`.

    kind how = kind::chained; ///< How the lane of an op is selected.
    int count = 4;            ///< The number of lanes when they are pooled or chained.

    /// n lanes, from 1 to 8. An op that must wait for an unfinished op (the last writer of an operand, or a reader of
    /// an operand that it writes) gets the lane of that op if no later op is on it. Every other op gets the lane with
    /// the fewest unfinished ops.
    static constexpr lane_policy chained(int n) noexcept { return {kind::chained, n}; }
    /// One lane for each library (memory, blas, ...).
    static constexpr lane_policy per_library() noexcept { return {kind::per_library, 1}; }
    /// One lane for everything.
    static constexpr lane_policy single() noexcept { return {kind::single, 1}; }
    /// n lanes, from 1 to 8, used in rotation.
    static constexpr lane_policy pooled(int n) noexcept { return {kind::pooled, n}; }
};

/// How the device detects that an op has ended.
enum class completion : std::uint8_t {
    /// Polls from the executor for spin_budget, then behaves like host_fn. It estimates how long ops of a name and size
    /// take, and polls again when one is about to end; before that it checks every 200 microseconds, or every 1/32 of
    /// the estimated duration if that is longer. Low latency for short ops, low CPU use during long ones. Behaves like
    /// host_fn if the executor and the ops share a single CPU.
    adaptive,
    /// The backend calls back; at most one callback is armed per lane. Before the executor sleeps, it polls for a few
    /// more microseconds.
    host_fn,
    /// Polls from the executor while anything is in flight.
    polled,
    /// One helper thread per lane blocks on the oldest op.
    sync,
};

/// How a context runs and monitors ops.
struct context_options {
    lane_policy lanes{};                                   ///< How ops are distributed over lanes.
    coaccel::completion completion = completion::adaptive; ///< How the end of an op is detected.
    /// How long `adaptive` polls after an op was last started or ended. Around the expected end of an op it polls from
    /// 12 times as long before to 12 times as long after it. A call of io_context::poll() lasts as long. Zero: no
    /// polling.
    std::chrono::nanoseconds spin_budget = std::chrono::microseconds(20);
    /// How often the context is checked for faults while ops are in flight.
    std::chrono::nanoseconds monitor_interval = std::chrono::milliseconds(25);
    /// An op that runs longer than this kills its context. The time counts from when no earlier op is left on its lane
    /// and the lane waits for no other lane. Zero: never. A hung GPU kernel cannot be stopped from within its process:
    /// its device fails, and the kernel keeps running until the process ends. If the kernel was only slow, a download
    /// behind it may later still write to the caller's pinned memory.
    std::chrono::nanoseconds hang_timeout{0};

    /// errc::invalid_option if an option is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
