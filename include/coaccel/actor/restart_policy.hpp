#ifndef COACCEL_ACTOR_RESTART_POLICY_HPP
#define COACCEL_ACTOR_RESTART_POLICY_HPP

#include <coaccel/core/error.hpp>

#include <chrono>

namespace coaccel {

/// What to do about a failed child.
enum class directive {
    /// Go on with the same incarnation; only the message in hand is lost to its sender.
    resume,
    /// Replace it by a fresh incarnation, within the budget.
    restart,
    /// End it for good; the others go on.
    stop,
    /// Let whoever supervises the supervisor decide.
    escalate,
};

/// Which children a restart concerns.
enum class strategy {
    /// The failed one.
    one_for_one,
    /// All of them.
    one_for_all,
    /// The failed one and those declared after it.
    rest_for_one,
};

/// Restarts everything.
COACCEL_DECL directive restart_always(const error_code& ec) noexcept;

/// How failures are answered. Times are on whatever steady clock the caller feeds in.
struct restart_policy {
    using duration = std::chrono::steady_clock::duration; ///< Of the steady clock.

    /// From an error to a directive.
    directive (*decider)(const error_code&) noexcept = &restart_always;
    coaccel::strategy strategy = coaccel::strategy::one_for_one; ///< Which children are restarted together.
    /// At most this many restarts per window; the next failure escalates. Zero: never restart.
    int max_restarts = 5;
    /// How long a restart counts, from the moment it takes effect.
    duration window = std::chrono::seconds(60);
    /// Delay before the first restart of a window; each further one multiplies it, up to the maximum.
    duration initial_backoff = std::chrono::milliseconds(100);
    duration max_backoff = std::chrono::seconds(30); ///< The longest wait before a restart.
    double multiplier = 2.0;                         ///< By how much each wait is longer than the one before.
    /// Fraction by which a delay is spread in both directions, in [0, 1].
    double jitter = 0.1;

    /// Errors: errc::invalid_option.
    [[nodiscard]] COACCEL_DECL error_code validate() const noexcept;
};

} // namespace coaccel

#endif
