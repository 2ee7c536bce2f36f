#ifndef COACCEL_ACTOR_RESTART_BUDGET_HPP
#define COACCEL_ACTOR_RESTART_BUDGET_HPP

#include <coaccel/actor/restart_policy.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>

namespace coaccel {

/// Decides what to do about each failure. The caller supplies the time and the random numbers.
///
/// Exceptions: the constructor, on_failure() and restart() throw std::bad_alloc when there is no memory; no restart is
/// counted then.
class COACCEL_DECL restart_budget {
public:
    using time_point = std::chrono::steady_clock::time_point; ///< A time of the steady clock.
    using duration = std::chrono::steady_clock::duration;     ///< A duration of the steady clock.

    /// The reaction to a failure.
    struct decision {
        coaccel::directive directive; ///< Restart, or the policy's other choice.
        /// The delay before a restart; zero otherwise.
        duration delay;
        /// Whether the policy chose a restart that the budget does not allow.
        bool used_up = false;
    };

    /// Preconditions: `policy` is valid.
    explicit restart_budget(const restart_policy& policy);

    /// Asks the policy what to do. A restart beyond the budget becomes an escalation.
    ///
    /// Preconditions: `now` never goes back; `random` is in [0, 1).
    decision on_failure(time_point now, const error_code& ec, double random);

    /// As on_failure, when the caller has already decided to restart.
    decision restart(time_point now, double random);

    /// Forgets the last `count` restarts, whose cause is known and gone.
    void forgive(std::size_t count) noexcept { restarts_.resize(restarts_.size() - std::min(count, restarts_.size())); }

    /// Forgets all counted restarts.
    void reset() noexcept { restarts_.clear(); }

    /// The number of restarts that the window at `now` still allows.
    std::size_t left(time_point now) const noexcept;

private:
    duration backoff(std::size_t restarts, double random) const noexcept;

    restart_policy policy_;
    // The time at which each counted restart takes effect, so that the delay does not use up the window.
    std::deque<time_point> restarts_;
};

} // namespace coaccel

#endif
