#ifndef COACCEL_OPS_PRIM_MOVE_HPP
#define COACCEL_OPS_PRIM_MOVE_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/axis.hpp>
#include <coaccel/ops/prim/layout.hpp>

// Elements in other places, for every element type. The tensors are packed, and the result is other memory than the
// operands.
namespace coaccel::prim {
namespace detail {

inline error_code check_two_axes(std::string_view op, std::uint64_t outer, std::uint64_t n, std::uint64_t m,
                                 std::uint64_t inner) noexcept
{
    if (auto ec = check_axis(op, outer, n, inner))
        return ec;
    return m == 0 ? coaccel::detail::is_zero(op, "m") : error_code{};
}

} // namespace detail

/// y(o, j, i) = x(o, indices(j), i): for each index the elements of x there, along an axis. x has the shape
/// outer x n x inner, y has outer x m x inner. An index that is not less than n gives elements whose bytes are zero.
template <element T>
struct gather {
    using value_type = T;

    in<T> x;                   ///< The elements.
    in<std::uint64_t> indices; ///< Places along the axis of x.
    inout<T> y;                ///< The results.
    std::uint64_t n = 0;       ///< The number of elements of x along the axis, such as the rows of a table.
    std::uint64_t m = 0;       ///< The number of indices.
    std::uint64_t outer = 1;   ///< The product of the dimensions before the axis.
    std::uint64_t inner = 1;   ///< The product of the dimensions after the axis, such as the columns of a table.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_two_axes(name, outer, n, m, inner))
            return ec;
        if (auto ec = detail::require_axis(name, "x", outer, n, inner, x.size()))
            return ec;
        if (auto ec = coaccel::detail::require(name, "indices", m, indices.size()))
            return ec;
        return detail::require_axis(name, "y", outer, m, inner, y.size());
    }

    bool overwrites() const noexcept { return detail::covers(3, {outer, m, inner}, y.size()); }

    COACCEL_PURE_OP(prim, gather, void, x, indices, y, n, m, outer, inner)
};

/// y(o, indices(j), i) = x(o, j, i): the elements of x go to their indices along an axis of y; the others of y stay
/// unchanged. x has the shape outer x m x inner, y has outer x n x inner. Of equal indices, the last one counts. An
/// index that is not less than n has no effect.
template <element T>
struct scatter {
    using value_type = T;

    in<T> x;                   ///< The elements.
    in<std::uint64_t> indices; ///< Places along the axis of y.
    inout<T> y;                ///< Where they go.
    std::uint64_t n = 0;       ///< The number of elements of y along the axis, such as the rows of a table.
    std::uint64_t m = 0;       ///< The number of indices.
    std::uint64_t outer = 1;   ///< The product of the dimensions before the axis.
    std::uint64_t inner = 1;   ///< The product of the dimensions after the axis, such as the columns of a table.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_two_axes(name, outer, n, m, inner))
            return ec;
        if (auto ec = detail::require_axis(name, "x", outer, m, inner, x.size()))
            return ec;
        if (auto ec = coaccel::detail::require(name, "indices", m, indices.size()))
            return ec;
        return detail::require_axis(name, "y", outer, n, inner, y.size());
    }

    COACCEL_PURE_OP(prim, scatter, void, x, indices, y, n, m, outer, inner)
};

/// y = a followed by b, along an axis. a has the shape outer x n x inner, b has outer x m x inner, y has
/// outer x (n + m) x inner. More parts are joined one after another.
template <element T>
struct concat {
    using value_type = T;

    in<T> a;                 ///< The first part.
    in<T> b;                 ///< The second part.
    inout<T> y;              ///< Both.
    std::uint64_t n = 0;     ///< The number of elements of a along the axis.
    std::uint64_t m = 0;     ///< The number of elements of b along the axis.
    std::uint64_t outer = 1; ///< The product of the dimensions before the axis.
    std::uint64_t inner = 1; ///< The product of the dimensions after the axis.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_two_axes(name, outer, n, m, inner))
            return ec;
        if (auto ec = detail::require_axis(name, "a", outer, n, inner, a.size()))
            return ec;
        if (auto ec = detail::require_axis(name, "b", outer, m, inner, b.size()))
            return ec;
        return detail::require_axis(name, "y", outer, coaccel::detail::plus(n, m), inner, y.size());
    }

    bool overwrites() const noexcept { return detail::covers(3, {outer, n + m, inner}, y.size()); }

    COACCEL_PURE_OP(prim, concat, void, a, b, y, n, m, outer, inner)
};

/// y = x with a border: `before` and `after` elements of `value` in each dimension.
template <element T>
struct pad {
    using value_type = T;

    in<T> x;                ///< The inner elements.
    inout<T> y;             ///< x and the border.
    std::uint64_t rank = 1; ///< The number of dimensions, at most 6.
    dimensions dims{};      ///< The shape of x.
    dimensions before{};    ///< The width of the border before the first element, in each dimension.
    dimensions after{};     ///< The width of the border after the last element, in each dimension.
    T value{};              ///< The elements of the border.

    /// The shape of y. Preconditions: the op was checked.
    constexpr dimensions result_dims() const noexcept
    {
        dimensions made{};
        for (std::size_t d = 0; d < rank && d < most_dimensions; ++d)
            made[d] = before[d] + dims[d] + after[d];
        return made;
    }

    error_code check() const noexcept
    {
        using coaccel::detail::plus;
        using coaccel::detail::times;
        if (auto ec = detail::check_dims(name, rank, dims))
            return ec;
        coaccel::detail::extent from = 1;
        coaccel::detail::extent to = 1;
        for (std::size_t d = 0; d < rank; ++d) {
            from = times(from, dims[d]);
            to = times(to, plus(plus(before[d], dims[d]), after[d]));
        }
        if (auto ec = coaccel::detail::require(name, "x", from, x.size()))
            return ec;
        return coaccel::detail::require(name, "y", to, y.size());
    }

    bool overwrites() const noexcept { return detail::covers(rank, result_dims(), y.size()); }

    COACCEL_PURE_OP(prim, pad, void, x, y, rank, dims, before, after, value)
};

/// y = x with its dimensions in another order: dimension d of y is dimension order[d] of x. Without a rank, the op
/// transposes a matrix of the shape dims[0] x dims[1].
template <element T>
struct transpose {
    using value_type = T;

    in<T> x;                ///< The elements.
    inout<T> y;             ///< The results.
    std::uint64_t rank = 2; ///< The number of dimensions, at most 6.
    dimensions dims{};      ///< The shape of x.
    dimensions order{1, 0}; ///< For each dimension of y, that of x; each occurs once.

    /// The layouts of x and y, in the order of y. Preconditions: the op was checked.
    constexpr layout<2> shape() const noexcept
    {
        dimensions from{};
        std::uint64_t next = 1;
        for (std::size_t d = rank; d-- > 0;) {
            from[d] = next;
            next *= dims[d];
        }
        layout<2> made;
        made.rank = rank;
        next = 1;
        for (std::size_t d = rank; d-- > 0;) {
            made.dims[d] = dims[order[d]];
            made.strides[0][d] = from[order[d]];
            made.strides[1][d] = next;
            next *= made.dims[d];
        }
        return made;
    }

    error_code check() const noexcept
    {
        if (auto ec = detail::check_dims(name, rank, dims))
            return ec;
        coaccel::detail::extent count = 1;
        std::uint64_t seen = 0;
        for (std::size_t d = 0; d < rank; ++d) {
            count = coaccel::detail::times(count, dims[d]);
            if (order[d] < rank)
                seen |= std::uint64_t(1) << order[d];
        }
        if (seen + 1 != std::uint64_t(1) << rank)
            return coaccel::detail::op_error(errc::invalid_argument, name,
                                             {"order does not have each of the ", rank, " dimensions once"});
        if (auto ec = coaccel::detail::require(name, "x", count, x.size()))
            return ec;
        return coaccel::detail::require(name, "y", count, y.size());
    }

    bool overwrites() const noexcept { return detail::covers(rank, dims, y.size()); }

    COACCEL_PURE_OP(prim, transpose, void, x, y, rank, dims, order)
};

/// The ops of this header for one element type.
template <element T>
using moves_for = type_list<gather<T>, scatter<T>, concat<T>, pad<T>, transpose<T>>;

} // namespace coaccel::prim

#endif
