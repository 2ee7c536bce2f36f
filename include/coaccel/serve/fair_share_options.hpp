#ifndef COACCEL_SERVE_FAIR_SHARE_OPTIONS_HPP
#define COACCEL_SERVE_FAIR_SHARE_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

namespace coaccel::serve {

/// What a tenant gets from a fair_share.
struct tenant_options {
    /// While several tenants have requests, each gets device time in proportion to its weight. From 1 to 1,000,000.
    std::uint32_t weight = 1;
    /// The device time that a tenant without requests saves up at most. When it returns, it is served before the
    /// others until it has used that time. Zero: nothing is saved.
    std::chrono::nanoseconds burst = std::chrono::milliseconds(100);
    /// The part of all device time that the tenant gets at least while it has requests, whatever the weights say. In
    /// [0, 0.9], and at most 0.9 for all tenants together, so that a tenth is left for the others.
    double minimum_share = 0;
    /// Requests that wait for their turn; further ones complete with errc::queue_full. At least 1.
    std::uint64_t max_queued = 1024;
    /// Turns at the same time. At least 1.
    std::uint64_t max_running = std::numeric_limits<std::uint64_t>::max();
    /// The device time that the first requests of the tenant are expected to take. Later it is the average of what
    /// was measured. Above zero, at most an hour.
    std::chrono::nanoseconds estimate = std::chrono::milliseconds(1);
};

/// How a fair_share divides device time.
///
/// Exceptions: check() does not throw; copying throws std::bad_alloc.
struct fair_share_options {
    std::string name = "fair_share"; ///< In messages and metrics.
    /// The tenants that have options of their own, by name. They are never forgotten, and have metrics of their own.
    std::map<std::string, tenant_options, std::less<>> tenants{};
    /// The options of each other tenant. Without a minimum share: any number of them could demand it.
    tenant_options others{};
    /// How many other tenants are remembered. One that has no requests and owes no device time is forgotten when
    /// another one needs its place; if there is none, requests of unknown tenants complete with errc::queue_full. At
    /// least 1.
    std::uint64_t max_tenants = 4096;
    /// Turns of all tenants at the same time. At least 1. As many as keep the device busy: the more there are, the less
    /// is left to decide here.
    std::uint64_t max_running = 4;
    /// Requests of all tenants that wait for their turn. At least 1.
    std::uint64_t max_queued = std::uint64_t(1) << 16;

    /// errc::invalid_option if an option is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel::serve

#endif
