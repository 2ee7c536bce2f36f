#include "device/latency.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace coaccel::detail {

void latency_histogram::add(std::chrono::nanoseconds time) noexcept
{
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
    ++counts_[log_buckets::index(ns == 0 ? 0 : ns - 1)];
    ++count_;
    max_ = std::max(max_, time);
    sum_ += std::max(time, std::chrono::nanoseconds::zero());
}

std::chrono::nanoseconds latency_histogram::upper(std::size_t bucket) noexcept
{
    return std::chrono::nanoseconds(log_buckets::upper(bucket) + 1);
}

std::chrono::nanoseconds latency_histogram::quantile(double q) const noexcept
{
    const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
        seen += counts_[b];
        if (seen >= rank && seen > 0)
            return std::min(max_, upper(b));
    }
    return max_;
}

op_latency latency_histogram::summary(std::string op) const
{
    op_latency row{std::move(op), count_, quantile(0.5), quantile(0.9), quantile(0.99), max_, sum_, {}};
    for (std::size_t b = 0; b < counts_.size(); ++b)
        if (counts_[b] > 0)
            row.buckets.push_back({upper(b), counts_[b]});
    return row;
}

} // namespace coaccel::detail
