#ifndef COACCEL_SERVE_HOT_SWAP_OPTIONS_HPP
#define COACCEL_SERVE_HOT_SWAP_OPTIONS_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::serve {

/// The default of rollback_options::is_failure: whether an error can be the fault of the version that answered. True
/// for every error except
/// - operation_aborted: the client has gone away,
/// - those of wrong arguments, such as errc::invalid_argument, errc::wrong_dtype and errc::length_mismatch,
/// - errc::queue_full: there are too many requests.
///
/// errc::deadline_exceeded counts, because a version that hangs or is too slow shows itself by it.
COACCEL_DECL bool is_version_failure(const error_code& ec) noexcept;

/// When a version that has taken over is rolled back because of its errors. It is watched until it is confirmed.
///
/// The rule looks at the last `max_requests` requests that ended within `window`. It fires if they are at least
/// `min_requests` and the share of failures among them is above `max_failure_share`. Requests that ended with an error
/// that is no failure of the version, and leases that were released without an outcome, are not among them.
struct rollback_options {
    /// The largest share of failures that is accepted, from 0 to 1. 1: the rule never fires.
    double max_failure_share = 0.5;
    /// The rule does not fire for fewer requests. From 1 to max_requests.
    std::uint32_t min_requests = 20;
    /// How many of the latest requests count; at most 1,000,000.
    std::uint32_t max_requests = 1000;
    /// How long an outcome counts. Zero: until the version is confirmed.
    std::chrono::nanoseconds window = std::chrono::seconds(10);
    /// Whether the version is to blame for an error. Called by the threads on which requests end, several at a time; it
    /// must not throw, and must not own the hot_swap, which would never end. Empty: is_version_failure.
    ///
    /// Lifetimes: it may be called until the last request has ended.
    std::function<bool(const error_code&)> is_failure{};
};

/// What a swap_event reports.
enum class swap_change : std::uint8_t {
    switched,    ///< The version answers requests from now on.
    load_failed, ///< The version was not loaded or not warmed up; the one that runs is untouched.
    confirmed,   ///< The version has proved itself; the previous one is drained.
    rolled_back, ///< The version was replaced by the previous one, by hand or by the rule.
    closed,      ///< The version has been shut down, because another one has replaced it or the hot_swap was stopped.
};

/// The name of the change, such as "rolled_back"; "unknown" for a value that is no enumerator.
COACCEL_DECL std::string_view to_string(swap_change change) noexcept;

/// A change of the versions of a hot_swap.
struct swap_event {
    swap_change what = swap_change::switched; ///< The change.
    std::uint64_t version = 0;                ///< The number of the version.
    std::string name;                         ///< The name of the version.
    /// Why: for load_failed the error of the load; for rolled_back by the rule the last failure, by hand success; for
    /// closed errc::deadline_exceeded if its requests or its shutdown took longer than drain_limit.
    error_code reason;
    std::string message; ///< The line for the log.
};

/// How a hot_swap loads, replaces and takes back versions.
///
/// Exceptions: check() does not throw; copying throws std::bad_alloc.
struct hot_swap_options {
    /// In messages, statistics and metrics.
    std::string name = "hot_swap";
    /// How long loading may take before it is cancelled and fails with errc::deadline_exceeded; zero: no limit.
    std::chrono::nanoseconds load_limit = std::chrono::minutes(5);
    /// The same for the warm-up.
    std::chrono::nanoseconds warm_up_limit = std::chrono::minutes(1);
    /// How long each step of the end of a version may take; zero: no limit. The steps are
    /// 1. its last requests; after the limit they are given up, and step 3 follows,
    /// 2. its shutdown with shutdown::drain,
    /// 3. if one of these took too long, its shutdown with shutdown::abandon, which is called while that of step 2 has
    ///    not ended. After the limit the version is given up.
    ///
    /// A version may thus take three times the limit.
    std::chrono::nanoseconds drain_limit = std::chrono::seconds(30);
    /// How long the previous version stays loaded after a switch, and the current one is watched. Then the current one
    /// counts as confirmed. Zero: the previous version is drained at once, and there is no way back;
    /// nanoseconds::max(): until confirm() is called.
    std::chrono::nanoseconds confirm_after = std::chrono::minutes(1);
    /// Loads that wait while one is in progress; further ones complete with errc::queue_full.
    std::uint32_t max_waiting_loads = 4;
    /// When a version is rolled back by itself.
    rollback_options rollback{};
    /// Called for each change, one call at a time and in order, on the executor. It must not own the hot_swap, which
    /// would never end. An exception is logged and otherwise ignored.
    ///
    /// Lifetimes: it is called until async_shutdown has completed with success; without that, until the executor has
    /// run out of work after the last copy of the hot_swap.
    std::function<void(const swap_event&)> on_event{};

    /// errc::invalid_option if an option is out of range.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

/// Where a version is on its way.
enum class version_state : std::uint8_t {
    waiting,    ///< Another version is being loaded before it.
    loading,    ///< Its load function runs.
    warming_up, ///< Its warm-up runs.
    current,    ///< It answers requests.
    previous,   ///< It is kept until the current one is confirmed.
    draining,   ///< It gets no further requests, and its last ones have not ended.
    closing,    ///< It is being shut down.
    closed,     ///< It has been shut down, but some of its requests have not ended.
};

/// The name of the state, such as "warming_up"; "unknown" for a value that is no enumerator.
COACCEL_DECL std::string_view to_string(version_state state) noexcept;

/// What one version has to do.
struct version_stats {
    std::uint64_t version = 0;                    ///< Its number: versions are counted from 1.
    std::string name;                             ///< Its name.
    version_state state = version_state::waiting; ///< Where it is.
    std::uint64_t in_flight = 0;                  ///< Requests that it has now.
    std::uint64_t completed = 0;                  ///< Requests that ended without an error.
    std::uint64_t failed = 0;                     ///< Requests that ended with an error of the version.
    std::uint64_t other = 0;                      ///< Requests that ended with another error, or without an outcome.
};

/// The counters of a hot_swap. They only grow, except those of `versions`, `current` and `previous`.
struct hot_swap_stats {
    std::uint64_t current = 0;             ///< The number of the version that answers requests; 0: none.
    std::uint64_t previous = 0;            ///< The number of the version that roll_back() returns to; 0: none.
    std::vector<version_stats> versions;   ///< The versions that exist, in the order of their loads.
    std::uint64_t completed = 0;           ///< Requests of all versions that ended without an error.
    std::uint64_t failed = 0;              ///< Requests of all versions that ended with an error of the version.
    std::uint64_t other = 0;               ///< Requests of all versions that ended with another error or no outcome.
    std::uint64_t refused = 0;             ///< Requests for which there was no version.
    std::uint64_t switches = 0;            ///< Loads that ended with a switch.
    std::uint64_t loads_failed = 0;        ///< Loads that ended with an error, except those that were cancelled.
    std::uint64_t loads_cancelled = 0;     ///< Loads that were cancelled.
    std::uint64_t confirmed = 0;           ///< Versions that were confirmed.
    std::uint64_t rolled_back_by_hand = 0; ///< Calls of roll_back() that succeeded.
    std::uint64_t rolled_back_by_rule = 0; ///< Versions that rollback_options has rolled back.
    std::uint64_t overdue = 0;             ///< Versions whose requests or shutdown took longer than drain_limit.
    swap_event last_rollback;              ///< The latest version that was rolled back; version 0: none.
};

} // namespace coaccel::serve

#endif
