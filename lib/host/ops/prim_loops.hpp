#ifndef COACCEL_HOST_OPS_PRIM_LOOPS_HPP
#define COACCEL_HOST_OPS_PRIM_LOOPS_HPP

#include "prim/loop_shape.hpp"

#include <coaccel/ops/prim/types.hpp>

#include <array>
#include <cstdint>
#include <type_traits>

// Shared by the ops of `prim`.
namespace coaccel::host {

/// The type in which elements are computed.
template <prim::number T>
using computed = std::conditional_t<prim::floating<T> && sizeof(T) == 2, float, T>;

/// Calls `row(places, count, strides)` for each row of the last dimension: the places of its first element in the
/// operands, the number of its elements, and their distances in the operands.
template <std::size_t Operands, class Row>
void for_each_row(const prim::loop_shape<Operands>& l, Row row)
{
    const std::uint64_t last = l.rank - 1;
    std::array<std::uint64_t, Operands> at{};
    std::array<std::uint64_t, Operands> strides;
    for (std::size_t k = 0; k < Operands; ++k)
        strides[k] = l.strides[k][last];
    prim::dimensions index{};
    for (;;) {
        row(at, l.dims[last], strides);
        std::uint64_t d = last;
        for (; d > 0; --d) {
            for (std::size_t k = 0; k < Operands; ++k)
                at[k] += l.strides[k][d - 1];
            if (++index[d - 1] < l.dims[d - 1])
                break;
            for (std::size_t k = 0; k < Operands; ++k)
                at[k] -= l.dims[d - 1] * l.strides[k][d - 1];
            index[d - 1] = 0;
        }
        if (d == 0)
            return;
    }
}

/// Calls `body(places...)` for each element.
template <std::size_t Operands, class Body>
void for_each_element(const prim::loop_shape<Operands>& l, Body body)
{
    const auto call = [&]<std::size_t... K>(std::index_sequence<K...>, const auto& at, std::uint64_t count,
                                            const auto& strides) {
        // The compiler can vectorise the loop over adjacent elements.
        if (((strides[K] == 1) && ...))
            for (std::uint64_t i = 0; i < count; ++i)
                body((at[K] + i)...);
        else
            for (std::uint64_t i = 0; i < count; ++i)
                body((at[K] + i * strides[K])...);
    };
    for_each_row(l, [&](const auto& at, std::uint64_t count, const auto& strides) {
        call(std::make_index_sequence<Operands>(), at, count, strides);
    });
}

} // namespace coaccel::host

#endif
