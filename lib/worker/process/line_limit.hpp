#ifndef COACCEL_WORKER_PROCESS_LINE_LIMIT_HPP
#define COACCEL_WORKER_PROCESS_LINE_LIMIT_HPP

#include <coaccel/core/config.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel::worker {

/// Decides which lines of a worker's output reach the log: a token bucket, which counts the lines it drops.
class COACCEL_DECL line_limit {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Size of a burst, and the sustained rate after it.
    static constexpr std::uint32_t burst = 1000;
    static constexpr std::uint32_t per_second = 100;
    /// Minimum time between two reports of dropped lines.
    static constexpr std::chrono::nanoseconds report_interval = std::chrono::seconds(1);

    explicit line_limit(time_point now) noexcept : last_line_(now), last_report_(now - report_interval) {}

    /// Whether the next line is logged.
    bool take(time_point now) noexcept;

    /// The number of lines dropped since the last report; zero until the next report is due.
    std::uint64_t report(time_point now) noexcept;
    /// The number of lines dropped since the last report, for a final report.
    std::uint64_t last_report() noexcept;

private:
    static constexpr std::chrono::nanoseconds price = std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second;

    // As a duration: each line costs its price.
    std::chrono::nanoseconds credit_ = burst * price;
    time_point last_line_;
    time_point last_report_;
    std::uint64_t dropped_ = 0;
};

} // namespace coaccel::worker

#endif
