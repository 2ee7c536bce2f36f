#ifndef COACCEL_TELEMETRY_HISTOGRAM_HPP
#define COACCEL_TELEMETRY_HISTOGRAM_HPP

#include <coaccel/core/config.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <vector>

namespace coaccel::detail {

struct histogram_cells;

} // namespace coaccel::detail

namespace coaccel::telemetry {

/// What a histogram tells apart. The defaults are for durations in seconds; `histogram_options::sizes()` is for sizes
/// and numbers of things.
struct histogram_options {
    /// The width of the finest buckets. The largest value is about 4e12 times as large; values above count as that.
    double resolution = 1e-9;
    /// The smallest and the largest bound that Prometheus gets; in between there is a bound for each power of two,
    /// times the resolution.
    double lowest = 1e-6;
    double highest = 64; ///< See `lowest`.

    /// Options for integers, such as the sizes of batches.
    static constexpr histogram_options sizes(double highest = 65536) noexcept { return {1, 1, highest}; }
};

/// The content of a histogram at one time.
struct histogram_snapshot {
    /// Values that differ by at most an eighth.
    struct bucket {
        double upper = 0;        ///< The largest value that it can contain.
        std::uint64_t count = 0; ///< The number of its values.

        friend bool operator==(const bucket&, const bucket&) = default;
    };

    std::vector<bucket> buckets; ///< The buckets that have values, in ascending order.
    std::vector<double> bounds;  ///< The bounds of the coarser buckets that Prometheus gets, in ascending order.
    std::uint64_t count = 0;     ///< The number of values.
    double sum = 0;              ///< The sum of the values.

    /// A value that a fraction q of all values does not exceed, at most an eighth above the smallest such value. A q
    /// below 0 counts as 0, one above 1 as 1. Zero without values; NaN if q is NaN.
    COACCEL_DECL double quantile(double q) const noexcept;
    /// The number of values that are at most `bound`, which is one of `bounds`.
    COACCEL_DECL std::uint64_t count_up_to(double bound) const noexcept;

    friend bool operator==(const histogram_snapshot&, const histogram_snapshot&) = default;
};

/// Counts values in logarithmic buckets, eight for each power of two. A value type: copies refer to the same histogram.
///
/// An observation adds to two atomic variables, with relaxed order, and allocates nothing.
///
/// Exceptions: the constructor and snapshot() throw std::bad_alloc.
/// Thread safety: every function may be called from any thread, also on the same object.
class COACCEL_DECL histogram {
public:
    /// An empty histogram. A resolution that is not positive and finite counts as 1e-9.
    explicit histogram(const histogram_options& options = {});

    /// Adds a duration, in seconds. A negative one counts as zero.
    void observe(std::chrono::nanoseconds time) const noexcept { observe(time, 1); }

    /// Adds a duration as often as this: the same as so many calls, for the cost of one.
    void observe(std::chrono::nanoseconds time, std::uint64_t times) const noexcept;

    /// Adds a value, rounded to the resolution. A negative value counts as zero; NaN is ignored.
    void observe(double value) const noexcept;

    /// Adds a value.
    template <std::integral T>
    void observe(T value) const noexcept
    {
        observe(static_cast<double>(value));
    }

    /// What it contains. Concurrent observations may be missing from it, or from its sum only.
    histogram_snapshot snapshot() const;

private:
    std::shared_ptr<detail::histogram_cells> cells_;
};

} // namespace coaccel::telemetry

#endif
