#include "core/log_buckets.hpp"

#include <coaccel/telemetry/histogram.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

namespace coaccel {

namespace detail {

/// A value is stored as a multiple of the resolution. Zero has its own bucket; the others are shifted by one, so that
/// powers of two are upper bounds of buckets.
struct histogram_cells {
    explicit histogram_cells(const telemetry::histogram_options& o)
        : resolution(std::isfinite(o.resolution) && o.resolution > 0 ? o.resolution : 1e-9)
    {
        // The resolution times a power of two is exact for sizes and is rounded only once for durations.
        for (std::uint64_t power = 1; power <= largest; power *= 2) {
            const double bound = value_of(power);
            if (bound >= o.lowest && bound <= o.highest)
                bounds.push_back(bound);
        }
    }

    double value_of(std::uint64_t units) const noexcept
    {
        // Where the inverse is an integer, the division gives the nearest double of a decimal fraction such
        // as 1.024e-06.
        const double inverse = std::nearbyint(1 / resolution);
        return resolution < 1 && 1 / inverse == resolution ? static_cast<double>(units) / inverse
                                                           : static_cast<double>(units) * resolution;
    }

    std::uint64_t units_of(double value) const noexcept
    {
        return static_cast<std::uint64_t>(std::llround(std::clamp(value / resolution, 0.0, static_cast<double>(most))));
    }

    void add(std::uint64_t units, std::uint64_t times = 1) noexcept
    {
        // A larger value, such as a wrong duration of years, would soon wrap the sum.
        units = std::min(units, most);
        const std::size_t cell = units == 0 ? 0 : log_buckets::index(units - 1) + 1;
        counts[cell].fetch_add(times, std::memory_order_relaxed);
        sum.fetch_add(units * times, std::memory_order_relaxed);
    }

    static constexpr std::uint64_t largest = std::uint64_t{1} << 41;
    /// The upper bound of the last bucket.
    static constexpr std::uint64_t most = log_buckets::upper(log_buckets::count - 1) + 1;

    const double resolution;
    std::vector<double> bounds;
    std::array<std::atomic<std::uint64_t>, log_buckets::count + 1> counts{};
    std::atomic<std::uint64_t> sum{0};
};

} // namespace detail

namespace telemetry {

histogram::histogram(const histogram_options& options) : cells_(std::make_shared<detail::histogram_cells>(options)) {}

void histogram::observe(std::chrono::nanoseconds time, std::uint64_t times) const noexcept
{
    if (cells_->resolution == 1e-9)
        cells_->add(static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)), times);
    else
        cells_->add(cells_->units_of(std::chrono::duration<double>(time).count()), times);
}

void histogram::observe(double value) const noexcept
{
    if (!std::isnan(value))
        cells_->add(cells_->units_of(value));
}

histogram_snapshot histogram::snapshot() const
{
    histogram_snapshot s;
    s.bounds = cells_->bounds;
    // Before the counts, so that a mean computed from both is never too large by much.
    s.sum = cells_->value_of(cells_->sum.load(std::memory_order_relaxed));
    for (std::size_t cell = 0; cell < cells_->counts.size(); ++cell) {
        const std::uint64_t n = cells_->counts[cell].load(std::memory_order_relaxed);
        if (n == 0)
            continue;
        const std::uint64_t upper = cell == 0 ? 0 : detail::log_buckets::upper(cell - 1) + 1;
        s.buckets.push_back({cells_->value_of(upper), n});
        s.count += n;
    }
    return s;
}

double histogram_snapshot::quantile(double q) const noexcept
{
    if (std::isnan(q))
        return std::numeric_limits<double>::quiet_NaN();
    const auto rank = static_cast<std::uint64_t>(std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count)));
    std::uint64_t seen = 0;
    for (const bucket& b : buckets) {
        seen += b.count;
        if (seen >= rank)
            return b.upper;
    }
    return buckets.empty() ? 0 : buckets.back().upper;
}

std::uint64_t histogram_snapshot::count_up_to(double bound) const noexcept
{
    std::uint64_t n = 0;
    for (const bucket& b : buckets)
        n += b.upper <= bound ? b.count : 0;
    return n;
}

} // namespace telemetry

} // namespace coaccel
