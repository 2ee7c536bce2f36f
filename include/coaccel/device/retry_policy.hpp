#ifndef COACCEL_DEVICE_RETRY_POLICY_HPP
#define COACCEL_DEVICE_RETRY_POLICY_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <optional>

namespace coaccel {

/// When a job that failed is worth another attempt. The defaults suit a job on a device that restarts its context.
struct retry_policy {
    using clock = std::chrono::steady_clock;                                   ///< Of the deadline.
    static constexpr clock::time_point no_deadline = clock::time_point::max(); ///< The default of `deadline`.

    /// In all, the first included.
    int attempts = 3;
    /// The wait before the second attempt; each further one is `multiplier` times as long, up to `max_backoff`. Short,
    /// because a device that rebuilds its context lets work wait anyway.
    clock::duration backoff = std::chrono::milliseconds(1);
    clock::duration max_backoff = std::chrono::seconds(1); ///< The longest wait.
    double multiplier = 2.0;                               ///< At least 1.
    /// No attempt begins later. One that has begun is not interrupted: give its ops a deadline of their own.
    clock::time_point deadline = no_deadline;
    /// Which errors are worth another attempt: a lost context, and with it refs that became stale.
    bool (*retryable)(const error_code&) noexcept = &is_context_lost;

    /// errc::invalid_option when something is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

/// Counts the attempts of one job, without clock or timer.
class COACCEL_DECL retry_counter {
public:
    using clock = retry_policy::clock; ///< Of the policy.

    /// Preconditions: `policy` is valid.
    explicit retry_counter(const retry_policy& policy) noexcept : policy_(policy), next_(policy.backoff) {}

    /// The last attempt failed with `ec`. How long to wait before the next one; nothing when there is none.
    [[nodiscard]] std::optional<clock::duration> failed(const error_code& ec, clock::time_point now) noexcept;

private:
    retry_policy policy_;
    int made_ = 1;
    clock::duration next_;
};

} // namespace coaccel

#endif
