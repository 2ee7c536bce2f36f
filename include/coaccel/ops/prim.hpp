#ifndef COACCEL_OPS_PRIM_HPP
#define COACCEL_OPS_PRIM_HPP

#include <coaccel/ops/prim/compact.hpp>
#include <coaccel/ops/prim/elementwise.hpp>
#include <coaccel/ops/prim/histogram.hpp>
#include <coaccel/ops/prim/layout.hpp>
#include <coaccel/ops/prim/move.hpp>
#include <coaccel/ops/prim/order.hpp>
#include <coaccel/ops/prim/reduce.hpp>
#include <coaccel/ops/prim/rows.hpp>
#include <coaccel/ops/prim/scan.hpp>

namespace coaccel::prim {
namespace detail {

template <element T>
consteval auto list_ops()
{
    using boost::mp11::mp_append;
    using any = mp_append<prim::casts_from<T>, moves_for<T>, selections_for<T>>;
    if constexpr (number<T>) {
        using numbers = mp_append<any, elementwise_for<T>, reductions_for<T>, scans_for<T>, orders_for<T>, runs_for<T>,
                                  histograms_for<T>>;
        if constexpr (floating<T>)
            return mp_append<numbers, rows_for<T>>{};
        else
            return numbers{};
    } else {
        return any{};
    }
}

} // namespace detail

/// All ops of this library for one element type.
template <element T>
using ops_for = decltype(detail::list_ops<T>());

} // namespace coaccel::prim

#endif
