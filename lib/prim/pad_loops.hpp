#ifndef COACCEL_PRIM_PAD_LOOPS_HPP
#define COACCEL_PRIM_PAD_LOOPS_HPP

#include <coaccel/ops/prim/move.hpp>

namespace coaccel::prim {

/// The loops of `pad`. The kernel has the same structure.
struct pad_loops {
    std::uint64_t count = 1;
    std::uint64_t rank = 0;
    dimensions dims{};
    dimensions before{};
    dimensions result{};
};

/// Preconditions: the op was checked.
template <element T>
pad_loops loops_of(const pad<T>& op) noexcept
{
    pad_loops made{.rank = op.rank, .dims = op.dims, .before = op.before, .result = op.result_dims()};
    for (std::size_t d = 0; d < op.rank; ++d)
        made.count *= made.result[d];
    return made;
}

} // namespace coaccel::prim

#endif
