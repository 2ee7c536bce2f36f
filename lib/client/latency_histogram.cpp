#include "client/latency_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace coaccel::client {
namespace {

using detail::log_buckets;

/// The largest of 1, 2 and 5 times a power of ten that is not above `ns`; 0 for less than 1.
std::uint64_t chart_step(std::uint64_t ns) noexcept
{
    std::uint64_t step = 0;
    for (std::uint64_t power = 1; power <= ns && power <= 1'000'000'000'000'000; power *= 10)
        for (const std::uint64_t factor : {1, 2, 5})
            if (factor * power <= ns)
                step = factor * power;
    return step;
}

std::uint64_t next_step(std::uint64_t step) noexcept
{
    auto power = step;
    while (power >= 10)
        power /= 10;
    return step == 0 ? 1 : power == 2 ? step / 2 * 5 : step * 2;
}

} // namespace

void latency_histogram::add(duration time) noexcept
{
    time = std::max(time, duration(0));
    ++buckets_[log_buckets::index(static_cast<std::uint64_t>(time.count()))];
    ++count_;
    sum_ += time;
    least_ = std::min(least_, time);
    most_ = std::max(most_, time);
}

void latency_histogram::add(const latency_histogram& other) noexcept
{
    for (std::size_t i = 0; i < buckets_.size(); ++i)
        buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    least_ = std::min(least_, other.least_);
    most_ = std::max(most_, other.most_);
}

latency_histogram::duration latency_histogram::mean() const noexcept
{
    return count_ == 0 ? duration(0) : duration(sum_.count() / static_cast<std::int64_t>(count_));
}

latency_histogram::duration latency_histogram::quantile(double q) const noexcept
{
    if (count_ == 0)
        return duration(0);
    const auto wanted =
        std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))), 1, count_);
    std::uint64_t passed = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        passed += buckets_[i];
        // The last bucket also has what is larger than its limit.
        if (passed >= wanted && i + 1 < buckets_.size())
            return std::clamp(duration(log_buckets::upper(i)), least_, most_);
    }
    return most_;
}

std::string latency_histogram::chart() const
{
    std::map<std::uint64_t, std::uint64_t> rows;
    for (std::size_t i = 0; i < buckets_.size(); ++i)
        if (buckets_[i] != 0)
            rows[chart_step(i == 0 ? 0 : log_buckets::upper(i - 1) + 1)] += buckets_[i];
    std::uint64_t highest = 1;
    for (const auto& [from, n] : rows)
        highest = std::max(highest, n);
    std::string all;
    const auto end = rows.empty() ? 0 : next_step(rows.rbegin()->first);
    for (auto from = rows.empty() ? 0 : rows.begin()->first; from < end; from = next_step(from)) {
        const auto n = rows.contains(from) ? rows[from] : 0;
        const auto bar = n == 0 ? 0 : std::max<std::uint64_t>(n * 40 / highest, 1);
        char line[128];
        std::snprintf(line, sizeof line, "  %8s - %-8s %9llu  ", duration_text(duration(from)).c_str(),
                      duration_text(duration(next_step(from))).c_str(), static_cast<unsigned long long>(n));
        all += line + std::string(bar, '#') + "\n";
    }
    return all;
}

std::string duration_text(std::chrono::nanoseconds time)
{
    const auto ns = static_cast<double>(time.count());
    const auto [by, unit] = ns < 1e3   ? std::pair(1.0, "ns")
                            : ns < 1e6 ? std::pair(1e3, "us")
                            : ns < 1e9 ? std::pair(1e6, "ms")
                                       : std::pair(1e9, "s");
    char text[32];
    std::snprintf(text, sizeof text, "%.3g %s", ns / by, unit);
    // 999.9 us are rounded to 1000, which would be written with an exponent.
    if (ns / by >= 999.5)
        std::snprintf(text, sizeof text, "%.0f %s", ns / by, unit);
    return text;
}

} // namespace coaccel::client
