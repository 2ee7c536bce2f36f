#ifndef COACCEL_CLIENT_LOAD_BUDGET_HPP
#define COACCEL_CLIENT_LOAD_BUDGET_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace coaccel::client {

/// How many requests a load test may still start. Several threads may use it.
class load_budget {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Without a count any number; without an end at any time.
    load_budget(std::optional<std::uint64_t> count, std::optional<time_point> end) noexcept : count_(count), end_(end)
    {}

    /// Whether a request may start at this time. It then counts.
    bool take(time_point now) noexcept
    {
        if (stopped_.load(std::memory_order_relaxed) || (end_ && now >= *end_))
            return false;
        return !count_ || taken_.fetch_add(1, std::memory_order_relaxed) < *count_;
    }

    /// No further request may start.
    void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
    bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }

private:
    std::optional<std::uint64_t> count_;
    std::optional<time_point> end_;
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<bool> stopped_{false};
};

} // namespace coaccel::client

#endif
