#ifndef COACCEL_DEVICE_LATENCY_HPP
#define COACCEL_DEVICE_LATENCY_HPP

#include "core/log_buckets.hpp"

#include <coaccel/device/device_stats.hpp>

#include <array>
#include <chrono>
#include <cstdint>

namespace coaccel::detail {

/// A histogram of durations with a relative error of at most 1/8, in constant memory.
class COACCEL_DECL latency_histogram {
public:
    void add(std::chrono::nanoseconds time) noexcept;

    std::uint64_t count() const noexcept { return count_; }
    std::chrono::nanoseconds max() const noexcept { return max_; }
    std::chrono::nanoseconds sum() const noexcept { return sum_; }

    /// The duration that a fraction q of all samples does not exceed.
    std::chrono::nanoseconds quantile(double q) const noexcept;

    op_latency summary(std::string op) const;

private:
    static std::chrono::nanoseconds upper(std::size_t bucket) noexcept;

    // Shifted by one nanosecond, so that powers of two are upper bounds of buckets. Up to 2^42 ns, about 73 minutes.
    std::array<std::uint64_t, log_buckets::count> counts_{};
    std::uint64_t count_ = 0;
    std::chrono::nanoseconds max_{};
    std::chrono::nanoseconds sum_{};
};

} // namespace coaccel::detail

#endif
