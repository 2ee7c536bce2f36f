#ifndef COACCEL_CLIENT_LATENCY_HISTOGRAM_HPP
#define COACCEL_CLIENT_LATENCY_HISTOGRAM_HPP

#include "core/log_buckets.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace coaccel::client {

/// How long requests took. Quantiles are at most an eighth too large.
class latency_histogram {
public:
    using duration = std::chrono::nanoseconds;

    void add(duration time) noexcept;
    void add(const latency_histogram& other) noexcept; ///< Adds what another one has counted.

    std::uint64_t count() const noexcept { return count_; }
    duration mean() const noexcept; ///< Zero if nothing was counted.
    duration least() const noexcept { return count_ == 0 ? duration(0) : least_; }
    duration most() const noexcept { return most_; }
    /// The time that the share `q` of requests, from 0 to 1, did not exceed.
    duration quantile(double q) const noexcept;

    /// A line with a bar for each range of times between 1, 2 and 5 times a power of ten.
    std::string chart() const;

private:
    std::array<std::uint64_t, detail::log_buckets::count> buckets_{};
    std::uint64_t count_ = 0;
    duration sum_{0};
    duration least_ = duration::max();
    duration most_{0};
};

/// "850 us", "1.25 ms", "2.5 s".
std::string duration_text(std::chrono::nanoseconds time);

} // namespace coaccel::client

#endif
