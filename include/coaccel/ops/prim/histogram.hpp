#ifndef COACCEL_OPS_PRIM_HISTOGRAM_HPP
#define COACCEL_OPS_PRIM_HISTOGRAM_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/axis.hpp>
#include <coaccel/ops/prim/types.hpp>

#include <cstdint>
#include <string_view>

namespace coaccel::prim {
namespace detail {

/// Checks the bins of a histogram.
COACCEL_DECL error_code check_bins(std::string_view op, double low, double high, std::uint64_t bins) noexcept;

} // namespace detail

/// counts = how many elements of x are in each of the bins, which divide [low, high) evenly. The bin of an element is
/// (x - low) * bins / (high - low), computed in f64 and rounded down, so integers beyond 2^53 are rounded first.
/// Elements outside and NaN are not counted.
template <number T>
struct histogram {
    using value_type = T;

    in<T> x;                     ///< The elements.
    inout<std::uint64_t> counts; ///< One number for each bin.
    std::uint64_t n = 0;         ///< The number of elements.
    std::uint64_t bins = 0;      ///< The number of bins.
    double low = 0;              ///< Where the first bin begins.
    double high = 1;             ///< Where the last bin ends; it does not contain this number.

    error_code check() const noexcept
    {
        if (n == 0)
            return coaccel::detail::is_zero(name, "n");
        if (auto ec = detail::check_bins(name, low, high, bins))
            return ec;
        if (auto ec = coaccel::detail::require(name, "x", n, x.size()))
            return ec;
        return coaccel::detail::require(name, "counts", bins, counts.size());
    }

    bool overwrites() const noexcept { return counts.size() == bins; }

    COACCEL_PURE_OP(prim, histogram, void, x, counts, n, bins, low, high)
};

/// The ops of this header for one element type.
template <number T>
using histograms_for = type_list<histogram<T>>;

} // namespace coaccel::prim

#endif
