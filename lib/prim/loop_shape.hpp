#ifndef COACCEL_PRIM_LOOP_SHAPE_HPP
#define COACCEL_PRIM_LOOP_SHAPE_HPP

#include <coaccel/ops/prim/layout.hpp>

#include <array>
#include <cstdint>

namespace coaccel::prim {

/// The loops of an elementwise op: a layout with as few dimensions as possible. The kernels have the same structure.
template <std::size_t Operands>
struct loop_shape {
    std::uint64_t count = 0;
    /// At least 1.
    std::uint64_t rank = 0;
    dimensions dims{};
    std::array<dimensions, Operands> strides{};
};

/// Removes dimensions of one element, and joins dimensions that are traversed in one go by all operands.
/// Preconditions: the layout was checked; `size` is the number of elements of the result, for a layout of rank 0.
template <std::size_t Operands>
loop_shape<Operands> loops_of(const layout<Operands>& l, std::uint64_t size) noexcept
{
    loop_shape<Operands> made;
    if (l.rank == 0) {
        made.count = made.dims[0] = size;
        made.rank = 1;
        for (auto& s : made.strides)
            s[0] = 1;
        return made;
    }
    made.count = 1;
    for (std::size_t d = 0; d < l.rank; ++d) {
        made.count *= l.dims[d];
        if (l.dims[d] == 1)
            continue;
        const std::uint64_t outer = made.rank;
        bool joined = outer > 0;
        // Products stay below the extents, which were checked, so they do not overflow.
        for (std::size_t k = 0; k < Operands && joined; ++k)
            joined = made.strides[k][outer - 1] == l.strides[k][d] * l.dims[d];
        const std::uint64_t at = joined ? outer - 1 : made.rank++;
        made.dims[at] = joined ? made.dims[at] * l.dims[d] : l.dims[d];
        for (std::size_t k = 0; k < Operands; ++k)
            made.strides[k][at] = l.strides[k][d];
    }
    if (made.rank == 0) {
        made.rank = 1;
        made.dims[0] = 1;
    }
    return made;
}

} // namespace coaccel::prim

#endif
