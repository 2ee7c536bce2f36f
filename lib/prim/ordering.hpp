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
    using u32 = std::uint32_t;
    if constexpr (integer<T>)
        return coaccel_prim::integer_key(x);
    else if constexpr (std::is_same_v<T, half>)
        return real_key<u32>(x.bits(), 0xffff, 0x7c00);
    else if constexpr (std::is_same_v<T, bfloat16>)
        return real_key<u32>(x.bits(), 0xffff, 0x7f80);
    else if constexpr (std::is_same_v<T, float>)
        return real_key<u32>(std::bit_cast<u32>(x), 0xffffffff, 0x7f800000);
    else
        return real_key<std::uint64_t>(std::bit_cast<std::uint64_t>(x), ~std::uint64_t(0), 0x7ff0000000000000);
}

} // namespace coaccel::prim

#endif
