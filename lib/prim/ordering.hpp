#ifndef COACCEL_PRIM_ORDERING_HPP
#define COACCEL_PRIM_ORDERING_HPP

#include "prim/functions.hpp"
#include "prim/ordering.cuh"

#include <coaccel/ops/prim/types.hpp>

#include <bit>

namespace coaccel::prim {

/// An unsigned number that is ordered as the element.
template <number T>
std::uint64_t key_of(const T& x) noexcept
{
    using coaccel_prim::real_key;
    constexpr std::uint64_t one = 1;
    if constexpr (integer<T>)
        return coaccel_prim::integer_key(x);
    else if constexpr (std::is_same_v<T, half>)
        return real_key(x.bits(), one << 15, 0x7c00);
    else if constexpr (std::is_same_v<T, bfloat16>)
        return real_key(x.bits(), one << 15, 0x7f80);
    else if constexpr (std::is_same_v<T, float>)
        return real_key(std::bit_cast<std::uint32_t>(x), one << 31, 0x7f800000);
    else
        return real_key(std::bit_cast<std::uint64_t>(x), one << 63, 0x7ff0000000000000);
}

} // namespace coaccel::prim

#endif
