#ifndef COACCEL_ACTOR_RESTART_POLICY_HPP
#define COACCEL_ACTOR_RESTART_POLICY_HPP

#include <coaccel/core/error.hpp>

#include <chrono>

namespace coaccel {

/// The reaction to a failed child (a supervised actor or supervisor).
enum class directive {
    /// Continue with the same incarnation; only the message being handled is lost.
    resume,
    /// Replace it with a new incarnation, within the budget.
    restart,
    /// Stop it permanently; the other children continue.
    stop,
    /// Pass the failure to the supervisor's own supervisor.
    escalate,
};

/// The children that a restart concerns.
enum class strategy {
    /// The failed child.
    one_for_one,
    /// All children.
    one_for_all,
    /// The failed child and the children declared after it.
    rest_for_one,
};

/// Returns directive::restart for every error.
COACCEL_DECL directive restart_always(const error_code& ec) noexcept;

/// How a supervisor reacts to failures. Times refer to the steady clock values that the caller supplies.
///
/// Exceptions: no function throws.
struct restart_policy {
    using duration = std::chrono::steady_clock::duration; ///< A duration of the steady clock.

    /// Maps an error to a directive.
    directive (*decider)(const error_code&) noexcept = &restart_always;
    coaccel::strategy strategy = coaccel::strategy::one_for_one; ///< Which children are restarted together.
    /// The maximum number of restarts per window; the next failure escalates. Zero: never restart.
    int max_restarts = 5;
    /// How long a restart counts against the budget, from the moment it takes effect.
    duration window = std::chrono::seconds(60);
    /// The delay before the first restart in a window. Each further restart multiplies it, up to max_backoff.
    duration initial_backoff = std::chrono::milliseconds(100);
    duration max_backoff = std::chrono::seconds(30); ///< The longest delay before a restart.
    double multiplier = 2.0;                         ///< The ratio of each delay to the previous one.
    /// The fraction by which a delay varies at random in both directions, in [0, 1].
    double jitter = 0.1;

    /// Errors: errc::invalid_option.
    [[nodiscard]] COACCEL_DECL error_code validate() const noexcept;
};

} // namespace coaccel

#endif
