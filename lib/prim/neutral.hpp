#ifndef COACCEL_PRIM_NEUTRAL_HPP
#define COACCEL_PRIM_NEUTRAL_HPP

#include <coaccel/ops/prim/reduce.hpp>

#include <limits>

namespace coaccel::prim {

/// The reduction of no elements.
template <number T>
T neutral(reduction r) noexcept
{
    using limits = std::numeric_limits<T>;
    switch (r) {
    case reduction::sum: break;
    case reduction::product: return T(1);
    case reduction::min:
        if constexpr (floating<T>)
            return limits::infinity();
        else
            return limits::max();
    case reduction::max:
        if constexpr (floating<T>)
            return -limits::infinity();
        else
            return limits::min();
    }
    return T(0);
}

} // namespace coaccel::prim

#endif
