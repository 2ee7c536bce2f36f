#ifndef COACCEL_DEVICE_RETRY_POLICY_HPP
#define COACCEL_DEVICE_RETRY_POLICY_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <optional>

namespace coaccel {

/// Decides when a failed job is attempted again. The defaults suit a job on a device that restarts its context.
///
/// Exceptions: no function throws.
struct retry_policy {
    using clock = std::chrono::steady_clock;                                   ///< The clock of the deadline.
    static constexpr clock::time_point no_deadline = clock::time_point::max(); ///< The default of `deadline`.

    /// The number of attempts, including the first.
    int attempts = 3;
    /// The delay before the second attempt; each further delay is `multiplier` times as long, up to `max_backoff`.
    /// Short, because work waits anyway while a device rebuilds its context.
    clock::duration backoff = std::chrono::milliseconds(1);
    clock::duration max_backoff = std::chrono::seconds(1); ///< The longest delay.
    double multiplier = 2.0;                               ///< At least 1.
    /// No attempt begins after this time. A running attempt is not interrupted: give its ops their own deadline.
    clock::time_point deadline = no_deadline;
    /// Which errors cause another attempt: by default a lost context, which includes stale refs.
    bool (*retryable)(const error_code&) noexcept = &is_context_lost;

    /// errc::invalid_option if an option is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

/// Counts the attempts of one job. Uses neither clock nor timer.
///
/// Exceptions: no function throws.
class COACCEL_DECL retry_counter {
public:
    using clock = retry_policy::clock; ///< The clock of the policy.

    /// Preconditions: `policy` is valid.
    explicit retry_counter(const retry_policy& policy) noexcept : policy_(policy), next_(policy.backoff) {}

    /// Records that the last attempt failed with `ec`. Returns the delay before the next attempt; empty if there is
    /// none.
    [[nodiscard]] std::optional<clock::duration> failed(const error_code& ec, clock::time_point now) noexcept;

private:
    retry_policy policy_;
    int made_ = 1;
    clock::duration next_;
};

} // namespace coaccel

#endif
