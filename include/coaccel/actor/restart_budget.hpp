#ifndef COACCEL_ACTOR_RESTART_BUDGET_HPP
#define COACCEL_ACTOR_RESTART_BUDGET_HPP

#include <coaccel/actor/restart_policy.hpp>

#include <chrono>
#include <cstddef>
#include <deque>

namespace coaccel {

/// Decides about failures, one after another. Has no clock and no source of chance of its own.
class COACCEL_DECL restart_budget {
public:
    using time_point = std::chrono::steady_clock::time_point; ///< Of the steady clock.
    using duration = std::chrono::steady_clock::duration;     ///< Of the steady clock.

    /// What to do about a failure.
    struct decision {
        coaccel::directive directive; ///< Restart, or what the policy says instead.
        /// How long to wait before a restart; zero otherwise.
        duration delay;
    };

    /// Preconditions: `policy` is valid.
    explicit restart_budget(const restart_policy& policy);

    /// A restart beyond the budget becomes an escalation.
    ///
    /// Preconditions: `now` never goes back; `random` is in [0, 1).
    decision on_failure(time_point now, const error_code& ec, double random);

    /// The same for who has decided already.
    decision restart(time_point now, double random);

    /// Begins anew, as if nothing had failed so far.
    void reset() noexcept { restarts_.clear(); }

    /// How many restarts the window at `now` still allows.
    std::size_t left(time_point now) const noexcept;

private:
    duration backoff(std::size_t restarts, double random) const noexcept;

    restart_policy policy_;
    // When each counted restart takes effect; waiting for it must not use the window up.
    std::deque<time_point> restarts_;
};

} // namespace coaccel

#endif
