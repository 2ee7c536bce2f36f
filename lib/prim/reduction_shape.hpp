#ifndef COACCEL_PRIM_REDUCTION_SHAPE_HPP
#define COACCEL_PRIM_REDUCTION_SHAPE_HPP

#include "prim/loop_shape.hpp"

#include <algorithm>

namespace coaccel::prim {

/// The loops of a reduction: over the results, and over the elements of each.
struct reduction_shape {
    loop_shape<2> results;
    loop_shape<1> elements;
};

/// Preconditions: the layout was checked; `size` is that of x, for a layout of rank 0.
inline reduction_shape reduction_loops(const layout<2>& l, std::uint64_t size) noexcept
{
    layout<2> results;
    layout<1> elements;
    const std::uint64_t rank = l.rank;
    for (std::size_t d = 0; d < rank; ++d)
        if (l.strides[1][d] == 0) {
            elements.dims[elements.rank] = l.dims[d];
            elements.strides[0][elements.rank++] = l.strides[0][d];
        } else {
            results.dims[results.rank] = l.dims[d];
            results.strides[0][results.rank] = l.strides[0][d];
            results.strides[1][results.rank++] = l.strides[1][d];
        }
    if (rank == 0)
        elements = layout<1>::vector(size);
    return {loops_of(results.rank == 0 ? layout<2>::vector(1) : results, 1),
            loops_of(elements.rank == 0 ? layout<1>::vector(1) : elements, 1)};
}

/// How the elements of a row are divided between blocks of a GPU. It depends on the shape only, not on the GPU, so that
/// sums are the same on all of them. The kernels have the same structure.
struct row_slices {
    /// Not 0: a thread computes a whole row by itself.
    std::uint64_t by_thread = 0;
    /// The number of slices of each row.
    std::uint64_t count = 1;
    /// The elements of a slice. The last one may have less.
    std::uint64_t length = 0;
};

/// `adjacent`: the elements of a row are adjacent, so that the threads of a block read them together. `least`: the
/// elements of the shortest slice of several ones, a power of two.
inline row_slices slices_of(std::uint64_t rows, std::uint64_t elements, bool adjacent, std::uint64_t least) noexcept
{
    constexpr std::uint64_t short_row = 32;
    constexpr std::uint64_t many_rows = 8192;
    constexpr std::uint64_t most_slices = 1024;
    if (elements <= short_row || (!adjacent && rows >= many_rows))
        return {.by_thread = 1, .count = 1, .length = elements};
    const std::uint64_t wanted = std::min(elements / least, most_slices / std::min(rows, most_slices));
    const std::uint64_t count = std::max<std::uint64_t>(wanted, 1);
    // A multiple of what a block reads at a time, so that only the last slice has a rest. Cannot overflow: there are at
    // least as many slices of `least` elements.
    const std::uint64_t unit = least / 2;
    const std::uint64_t length = count == 1 ? elements : (elements / count + unit - 1) / unit * unit;
    return {.by_thread = 0, .count = (elements - 1) / length + 1, .length = length};
}

} // namespace coaccel::prim

#endif
