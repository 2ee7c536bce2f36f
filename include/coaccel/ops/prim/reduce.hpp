#ifndef COACCEL_OPS_PRIM_REDUCE_HPP
#define COACCEL_OPS_PRIM_REDUCE_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/axis.hpp>
#include <coaccel/ops/prim/layout.hpp>
#include <coaccel/ops/prim/types.hpp>

#include <boost/describe/enum.hpp>

// Many elements become one. The order in which elements are added depends on the shape only, so that a result is the
// same each time, on every GPU.
namespace coaccel::prim {

/// How elements are combined. Sums and products of f16 and bf16 are computed in f32 or f64, other real ones in f64;
/// those of integers wrap around.
enum class reduction : std::uint8_t {
    sum,     ///< All added.
    product, ///< All multiplied.
    min,     ///< The least one; NaN if there is one.
    max,     ///< The greatest one; NaN if there is one.
};
BOOST_DESCRIBE_ENUM(reduction, sum, product, min, max)

/// Which element `arg_reduce` looks for.
enum class arg_reduction : std::uint8_t {
    min, ///< The least one.
    max, ///< The greatest one.
};
BOOST_DESCRIBE_ENUM(arg_reduction, min, max)

constexpr bool valid(reduction r) noexcept
{
    return r <= reduction::max;
}

constexpr bool valid(arg_reduction r) noexcept
{
    return r <= arg_reduction::max;
}

namespace detail {

/// Checks the layout of a reduction of x (0) to y (1): y has one element along the dimensions in which its stride is 0.
COACCEL_DECL error_code check_reduction(std::string_view op, const layout<2>& l, const placed_operand& x,
                                        const placed_operand& y) noexcept;

/// Whether a reduction writes all `size` elements of y.
COACCEL_DECL bool covers_results(const layout<2>& l, std::uint64_t size) noexcept;

} // namespace detail

/// y = the reduction of x. The shape is that of x; along the dimensions in which y has a stride of zero, the elements
/// of x are combined. For a matrix, `layout<2>::matrix(rows, columns).column(1)` gives one result for each row,
/// `.row(1)` one for each column, `.scalar(1)` a single one, as does the default.
template <number T>
struct reduce {
    using value_type = T;

    in<T> x;                         ///< The elements.
    inout<T> y;                      ///< The results.
    reduction what = reduction::sum; ///< How they are combined.
    layout<2> shape{};               ///< The layouts of x (0) and y (1); default: x is packed, y has one element.

    error_code check() const noexcept
    {
        if (!valid(what))
            return coaccel::detail::not_enumerated(name, "what", static_cast<unsigned>(what), "prim::reduction");
        return detail::check_reduction(name, shape, {"x", x.raw}, {"y", y.raw});
    }

    bool overwrites() const noexcept { return detail::covers_results(shape, y.size()); }

    COACCEL_PURE_OP(prim, reduce, void, x, y, what, shape)
};

/// y = the index of the least or greatest element, counted from 0 in row-major order along the dimensions that are
/// reduced, as with `reduce`. Of equal elements the first one counts. The first NaN counts before all numbers.
template <number T>
struct arg_reduce {
    using value_type = T;

    in<T> x;                                 ///< The elements.
    inout<std::uint64_t> y;                  ///< The indices.
    arg_reduction what = arg_reduction::max; ///< Which element.
    layout<2> shape{}; ///< The layouts of x (0) and y (1); default: x is packed, y has one element.

    error_code check() const noexcept
    {
        if (!valid(what))
            return coaccel::detail::not_enumerated(name, "what", static_cast<unsigned>(what), "prim::arg_reduction");
        return detail::check_reduction(name, shape, {"x", x.raw}, {"y", y.raw});
    }

    bool overwrites() const noexcept { return detail::covers_results(shape, y.size()); }

    COACCEL_PURE_OP(prim, arg_reduce, void, x, y, what, shape)
};

/// y(s) = the reduction of the rows of x from offsets(s) to offsets(s + 1), without the latter, for each column of the
/// packed matrix x. Offsets beyond the number of rows count as that number. A segment that has no rows gives 0 for a
/// sum, 1 for a product, and for min and max the greatest and least number of the type (infinity for real numbers).
template <number T>
struct segmented_reduce {
    using value_type = T;

    in<T> x;                         ///< The matrix, row by row.
    in<std::uint64_t> offsets;       ///< Where the segments begin, and the end of the last one: segments + 1 rows.
    inout<T> y;                      ///< The results: a packed matrix with one row for each segment.
    std::uint64_t rows = 0;          ///< The number of rows of x.
    std::uint64_t segments = 0;      ///< The number of segments.
    std::uint64_t columns = 1;       ///< The number of columns of x and y.
    reduction what = reduction::sum; ///< How elements are combined.

    error_code check() const noexcept
    {
        if (!valid(what))
            return coaccel::detail::not_enumerated(name, "what", static_cast<unsigned>(what), "prim::reduction");
        if (rows == 0)
            return coaccel::detail::is_zero(name, "rows");
        if (segments == 0)
            return coaccel::detail::is_zero(name, "segments");
        if (columns == 0)
            return coaccel::detail::is_zero(name, "columns");
        using coaccel::detail::times;
        if (auto ec = coaccel::detail::require(name, "x", times(rows, columns), x.size()))
            return ec;
        if (auto ec = coaccel::detail::require(name, "offsets", coaccel::detail::plus(segments, 1), offsets.size()))
            return ec;
        return coaccel::detail::require(name, "y", times(segments, columns), y.size());
    }

    bool overwrites() const noexcept { return detail::covers(2, {segments, columns}, y.size()); }

    COACCEL_PURE_OP(prim, segmented_reduce, void, x, offsets, y, rows, segments, columns, what)
};

/// The ops of this header for one element type.
template <number T>
using reductions_for = type_list<reduce<T>, arg_reduce<T>, segmented_reduce<T>>;

} // namespace coaccel::prim

#endif
