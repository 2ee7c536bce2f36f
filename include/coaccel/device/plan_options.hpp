#ifndef COACCEL_DEVICE_PLAN_OPTIONS_HPP
#define COACCEL_DEVICE_PLAN_OPTIONS_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/device/load_progress.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel {

/// Whether the runs of a repeatable plan that were lost with their context run again in the next one.
enum class rerun_policy : std::uint8_t {
    never, ///< Such a run completes with errc::context_lost.
    once,  ///< A run that is lost twice completes with errc::context_lost.
    /// They run again until they succeed, their deadline passes, or they have been lost 8 times. In all cases a run
    /// that ends a context on which nothing else runs does not run again.
    until_deadline,
};

/// When a run takes so long that its device moves to the standby before the driver reports a fault. See suspect_after.
struct overdue_rule {
    /// How many times longer than the runs of the plan usually take; 0: never. Not below 0, not between 0 and 2.
    double factor = 0;
    /// A run that takes less time than this is never overdue. At least 1 ms.
    std::chrono::nanoseconds at_least = std::chrono::milliseconds(20);

    bool enabled() const noexcept { return factor > 0; } ///< Whether runs can be overdue.
};

/// How a device loads and runs a plan.
struct plan_options {
    static constexpr int max_instances = 4096; ///< The maximum of `instances`.

    /// How many runs can be on the device at the same time. Each has its own memory. `initial` instances are made when
    /// the plan is loaded, the others when runs wait for one. From 1 to 4096.
    int instances = 16;
    /// How many of them are made before the call completes. From 1 to `instances`.
    int initial = 1;
    /// Whether runs that were lost with their context run again. For plans that are not repeatable it has no effect.
    rerun_policy rerun = rerun_policy::until_deadline;
    /// How many runs may end the context of the device within a minute before the plan is quarantined: its runs then
    /// complete with errc::plan_quarantined. At least 1.
    int poison_limit = 8;
    /// For a device with a standby and context_options::hang_timeout, and a plan whose runs can run again.
    overdue_rule suspect_after{};
    /// Where the device notes how far it is, for the caller to read; null: nowhere. It must exist until the call has
    /// completed. A pointer, because options stay trivially copyable.
    load_progress* progress = nullptr;

    /// errc::invalid_option if an option is out of range.
    COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel

#endif
