#include "device/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace coaccel::detail {

void latency_histogram::add(std::chrono::nanoseconds time) noexcept
{
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
    ++counts_[bucket(ns)];
    ++count_;
    max_ = std::max(max_, time);
    sum_ += std::max(time, std::chrono::nanoseconds::zero());
}

// Values below eight each have their own bucket. Above, the three bits after the leading one select the bucket.
std::size_t latency_histogram::bucket(std::uint64_t ns) noexcept
{
    if (ns < steps)
        return ns;
    const auto power = static_cast<unsigned>(std::bit_width(ns)) - 4;
    const std::size_t index = (power + 1) * steps + ((ns >> power) & (steps - 1));
    return std::min<std::size_t>(index, steps * powers - 1);
}

std::uint64_t latency_histogram::upper(std::size_t bucket) noexcept
{
    if (bucket < steps)
        return bucket;
    const auto power = bucket / steps - 1;
    return ((steps + bucket % steps + 1) << power) - 1;
}

std::chrono::nanoseconds latency_histogram::quantile(double q) const noexcept
{
    const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
        seen += counts_[b];
        if (seen >= rank && seen > 0)
            return std::min(max_, std::chrono::nanoseconds(upper(b)));
    }
    return max_;
}

op_latency latency_histogram::summary(std::string op) const
{
    return {std::move(op), count_, quantile(0.5), quantile(0.9), quantile(0.99), max_, sum_};
}

} // namespace coaccel::detail
