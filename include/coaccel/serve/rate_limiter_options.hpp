#ifndef COACCEL_SERVE_RATE_LIMITER_OPTIONS_HPP
#define COACCEL_SERVE_RATE_LIMITER_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace coaccel::serve {

/// The token bucket of a tenant. It is full at first. A request takes tokens out of it, and they come back with time.
struct rate_limit {
    /// Tokens that come back in each period, evenly. From 1 to 10^12.
    std::uint64_t rate = 100;
    /// From 1 ns to a day.
    std::chrono::nanoseconds period = std::chrono::seconds(1);
    /// The size of the bucket: tokens that can be taken at once after a pause. From 1 to 10^12.
    std::uint64_t burst = 100;
    /// Requests that wait for tokens; further ones complete with errc::queue_full.
    std::uint64_t max_waiting = 1024;
};

/// How a rate_limiter limits.
///
/// Exceptions: check() does not throw; copying throws std::bad_alloc.
struct rate_limiter_options {
    std::string name = "rate_limiter"; ///< In messages and metrics.
    /// The tenants that have limits of their own, by name. They are never forgotten, and have metrics of their own.
    std::map<std::string, rate_limit, std::less<>> tenants{};
    /// The limit of each other tenant.
    rate_limit others{};
    /// How many other tenants are remembered. One whose bucket is full is forgotten when another one needs its place;
    /// until there is one, unknown tenants are refused. At least 1.
    std::uint64_t max_tenants = 65536;

    /// errc::invalid_option if an option is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

/// Whether a request may go on.
struct rate_decision {
    bool allowed = false;                    ///< The tokens were taken.
    std::chrono::nanoseconds retry_after{0}; ///< If not: when the tokens are there, unless others take them before.

    /// retry_after in whole seconds, rounded up, for the header field `Retry-After` of HTTP.
    std::int64_t retry_after_seconds() const noexcept
    {
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(retry_after);
        return whole.count() + (whole < retry_after ? 1 : 0);
    }

    explicit operator bool() const noexcept { return allowed; }
};

/// What happened to requests. The numbers only grow, except those that say "now". A request is counted in exactly one
/// of `allowed`, `refused`, `cancelled` and `expired`, unless its arguments were invalid.
struct rate_counts {
    std::uint64_t waiting = 0;   ///< Requests that wait for tokens now.
    std::uint64_t allowed = 0;   ///< Requests that got their tokens.
    std::uint64_t refused = 0;   ///< Requests that did not, because of the rate or because too many waited.
    std::uint64_t cancelled = 0; ///< Requests that ended with operation_aborted.
    std::uint64_t expired = 0;   ///< Requests that ended with errc::deadline_exceeded.
};

/// One tenant of a rate_limiter.
struct rate_tenant_stats {
    std::string name;         ///< Its name.
    bool configured = false;  ///< Whether it is in rate_limiter_options::tenants.
    rate_counts counts;       ///< Its requests, since it is remembered.
    std::uint64_t tokens = 0; ///< Whole tokens in its bucket now.
};

/// The counters of a rate_limiter.
struct rate_limiter_stats {
    rate_counts all;                        ///< All tenants together, also those that were forgotten.
    std::uint64_t forgotten = 0;            ///< How often a tenant was forgotten.
    std::vector<rate_tenant_stats> tenants; ///< The tenants that are remembered, by name.
};

} // namespace coaccel::serve

#endif
