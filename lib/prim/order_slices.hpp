#ifndef COACCEL_PRIM_ORDER_SLICES_HPP
#define COACCEL_PRIM_ORDER_SLICES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coaccel::prim {

/// How a row is divided between blocks of a GPU. The kernels have the same structure.
struct order_slices {
    std::uint64_t count = 1;
    /// The elements of a slice. The last one may have less.
    std::uint64_t length = 0;
};

/// About `most` slices of all rows together, of at least `least` elements.
inline order_slices divide_rows(std::uint64_t rows, std::uint64_t n, std::uint64_t least, std::uint64_t most) noexcept
{
    const std::uint64_t wanted = std::min(n / least, most / std::min(rows, most));
    const std::uint64_t count = std::max<std::uint64_t>(wanted, 1);
    const std::uint64_t length = (n - 1) / count + 1;
    return {.count = (n - 1) / length + 1, .length = length};
}

/// For top_k: each slice gives k candidates.
inline order_slices top_k_slices(std::uint64_t rows, std::uint64_t n, std::uint64_t k) noexcept
{
    constexpr std::uint64_t least = 8192;
    return divide_rows(rows, n, k > n / 4 ? n : std::max(least, 4 * k), 512);
}

/// Rows up to this length are sorted by comparing all pairs.
inline constexpr std::uint64_t short_sort = 512;

/// For ops that keep some of n elements.
inline order_slices compact_slices(std::uint64_t n) noexcept
{
    constexpr std::uint64_t least = 2048;
    return divide_rows(1, n, least, 2048);
}

/// What such an op keeps of a slice between its launches: the kernels have a structure of this size.
inline constexpr std::size_t kept_bytes = 16;

/// A block of a histogram counts up to this many bins in its shared memory. As in kernels/histogram.cuh.
inline constexpr std::uint64_t most_shared_bins = 8192;

/// For histograms. A slice has more elements than counters, which a block clears and adds.
inline order_slices histogram_slices(std::uint64_t n, std::uint64_t bins) noexcept
{
    constexpr std::uint64_t least = 2048;
    return divide_rows(1, n, bins <= most_shared_bins ? std::max(least, 4 * bins) : least, 2048);
}

} // namespace coaccel::prim

#endif
