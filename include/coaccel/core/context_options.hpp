#ifndef COACCEL_CORE_CONTEXT_OPTIONS_HPP
#define COACCEL_CORE_CONTEXT_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel {

/// How the ops of a device are spread over lanes (streams). Ops on one lane run one after another;
/// across lanes the device orders only what shares elements of a buffer.
struct lane_policy {
    /// What decides on the lane of an op.
    enum class kind : std::uint8_t { per_library, single, pooled };

    static constexpr int max_pooled = 8; ///< The largest count.

    kind how = kind::per_library; ///< What decides on the lane of an op.
    int count = 1;                ///< Of lanes, when they are pooled.

    /// One lane for each library (memory, blas, ...).
    static constexpr lane_policy per_library() noexcept { return {}; }
    /// One lane for everything.
    static constexpr lane_policy single() noexcept { return {kind::single, 1}; }
    /// n lanes in turn, from 1 to 8.
    static constexpr lane_policy pooled(int n) noexcept { return {kind::pooled, n}; }
};

/// How the device learns that an op has ended.
enum class completion : std::uint8_t {
    /// Poll from the executor for spin_budget, then as host_fn. It learns how long ops of a name and size take, and
    /// polls again when one is about to end; before that it looks every 200 microseconds, or 32 times. Quick
    /// for short ops, idle for long ones. As host_fn where the ops run on the only CPU there is.
    adaptive,
    /// The backend calls back; at most one call is armed per lane. Before the executor sleeps it looks for a few
    /// microseconds more.
    host_fn,
    /// Poll from the executor while anything is in flight.
    polled,
    /// A helper thread per lane blocks on the oldest op.
    sync,
};

/// How a context runs ops and watches over them.
struct context_options {
    lane_policy lanes{};                                   ///< How ops spread over lanes.
    coaccel::completion completion = completion::adaptive; ///< How the end of an op is noticed.
    /// How long `adaptive` polls after the last op that ended; twelve times as long before and after the expected end
    /// of one. A call of io_context::poll() lasts as long. Zero: it never polls.
    std::chrono::nanoseconds spin_budget = std::chrono::microseconds(20);
    /// How often the context is asked for faults while ops are in flight.
    std::chrono::nanoseconds monitor_interval = std::chrono::milliseconds(25);
    /// An op that runs longer than this condemns its context. It counts from the time when nothing is before it on its
    /// lane any more, and it waits for no other lane. Zero: never. A kernel that hangs on a GPU cannot be stopped from
    /// within its process: its device fails, and the GPU goes on until the process ends. Should the kernel only have
    /// been slow, a download behind it may then still write to pinned memory of the caller's.
    std::chrono::nanoseconds hang_timeout{0};

    /// errc::invalid_option when something is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
