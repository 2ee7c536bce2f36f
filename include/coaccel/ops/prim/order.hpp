#ifndef COACCEL_OPS_PRIM_ORDER_HPP
#define COACCEL_OPS_PRIM_ORDER_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/axis.hpp>
#include <coaccel/ops/prim/layout.hpp>
#include <coaccel/ops/prim/types.hpp>

#include <boost/describe/enum.hpp>

// Ops that order the elements of rows. NaN counts as greater than every number, and both zeros are equal. The results
// are other memory than the operands.
namespace coaccel::prim {

/// The order of sorted elements.
enum class sort_order : std::uint8_t {
    ascending,  ///< The least one first.
    descending, ///< The greatest one first.
};
BOOST_DESCRIBE_ENUM(sort_order, ascending, descending)

constexpr bool valid(sort_order o) noexcept
{
    return o <= sort_order::descending;
}

namespace detail {

inline error_code check_order(std::string_view op, sort_order order, std::uint64_t outer, std::uint64_t n) noexcept
{
    if (!valid(order))
        return coaccel::detail::not_enumerated(op, "order", static_cast<unsigned>(order), "prim::sort_order");
    return check_axis(op, outer, n, 1);
}

} // namespace detail

/// The k greatest or least elements of each row, sorted, and their indices in the row. Of equal elements, those with
/// the lesser indices come first.
template <number T>
struct top_k {
    using value_type = T;

    in<T> x;                                   ///< The elements: a packed matrix with `outer` rows.
    inout<T> values;                           ///< The elements found: a packed matrix with k columns.
    inout<std::uint64_t> indices;              ///< Their indices, with the same shape.
    std::uint64_t n = 0;                       ///< The number of elements of a row of x.
    std::uint64_t k = 0;                       ///< How many are wanted; at most n.
    std::uint64_t outer = 1;                   ///< The number of rows.
    sort_order order = sort_order::descending; ///< Descending: the greatest elements; ascending: the least ones.

    error_code check() const noexcept
    {
        using coaccel::detail::times;
        if (auto ec = detail::check_order(name, order, outer, n))
            return ec;
        if (k == 0)
            return coaccel::detail::is_zero(name, "k");
        if (k > n)
            return coaccel::detail::op_error(errc::invalid_argument, name,
                                             {"k is ", k, ", a row has ", n, " elements"});
        if (auto ec = coaccel::detail::require(name, "x", times(outer, n), x.size()))
            return ec;
        if (auto ec = coaccel::detail::require(name, "values", times(outer, k), values.size()))
            return ec;
        return coaccel::detail::require(name, "indices", times(outer, k), indices.size());
    }

    bool overwrites() const noexcept
    {
        return detail::covers(2, {outer, k}, values.size()) && detail::covers(2, {outer, k}, indices.size());
    }

    COACCEL_PURE_OP(prim, top_k, void, x, values, indices, n, k, outer, order)
};

/// y = the elements of each row in order. The order of equal elements (zeros with different signs, different NaN)
/// stays.
template <number T>
struct sort {
    using value_type = T;

    in<T> x;                                  ///< The elements: a packed matrix with `outer` rows.
    inout<T> y;                               ///< The sorted rows.
    std::uint64_t n = 0;                      ///< The number of elements of a row.
    std::uint64_t outer = 1;                  ///< The number of rows, each of which is sorted by itself.
    sort_order order = sort_order::ascending; ///< The order.

    error_code check() const noexcept
    {
        using coaccel::detail::times;
        if (auto ec = detail::check_order(name, order, outer, n))
            return ec;
        if (auto ec = coaccel::detail::require(name, "x", times(outer, n), x.size()))
            return ec;
        return coaccel::detail::require(name, "y", times(outer, n), y.size());
    }

    bool overwrites() const noexcept { return detail::covers(2, {outer, n}, y.size()); }

    COACCEL_PURE_OP(prim, sort, void, x, y, n, outer, order)
};

/// As `sort`, and each value goes where its key goes. Values of equal keys stay in their order. With the values of
/// `sequence`, the result has the indices of the sorted keys.
template <number T>
struct sort_pairs {
    using value_type = T;

    in<T> keys;                               ///< The keys: a packed matrix with `outer` rows.
    in<std::uint64_t> values;                 ///< One value for each key.
    inout<T> sorted_keys;                     ///< The keys in order.
    inout<std::uint64_t> sorted_values;       ///< Their values.
    std::uint64_t n = 0;                      ///< The number of keys of a row.
    std::uint64_t outer = 1;                  ///< The number of rows, each of which is sorted by itself.
    sort_order order = sort_order::ascending; ///< The order.

    error_code check() const noexcept
    {
        using coaccel::detail::require;
        if (auto ec = detail::check_order(name, order, outer, n))
            return ec;
        const auto count = coaccel::detail::times(outer, n);
        if (auto ec = require(name, "keys", count, keys.size()))
            return ec;
        if (auto ec = require(name, "values", count, values.size()))
            return ec;
        if (auto ec = require(name, "sorted_keys", count, sorted_keys.size()))
            return ec;
        return require(name, "sorted_values", count, sorted_values.size());
    }

    bool overwrites() const noexcept
    {
        return detail::covers(2, {outer, n}, sorted_keys.size()) && detail::covers(2, {outer, n}, sorted_values.size());
    }

    COACCEL_PURE_OP(prim, sort_pairs, void, keys, values, sorted_keys, sorted_values, n, outer, order)
};

/// The ops of this header for one element type.
template <number T>
using orders_for = type_list<top_k<T>, sort<T>, sort_pairs<T>>;

} // namespace coaccel::prim

#endif
