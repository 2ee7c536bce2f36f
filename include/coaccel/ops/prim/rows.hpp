#ifndef COACCEL_OPS_PRIM_ROWS_HPP
#define COACCEL_OPS_PRIM_ROWS_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>
#include <coaccel/ops/prim/axis.hpp>
#include <coaccel/ops/prim/layout.hpp>
#include <coaccel/ops/prim/types.hpp>

#include <boost/describe/enum.hpp>

#include <cmath>

// Ops that models need between their products. Matrices are row-major: a column-major matrix of `blas` with m rows and
// n columns is a row-major one with n rows and m columns. The result may be x itself. Sums of f16 and bf16 are computed
// in f32 or f64, other sums in f64.
namespace coaccel::prim {

/// The functions of bias_activation.
enum class activation : std::uint8_t {
    none,    ///< x
    relu,    ///< The greater one of x and 0; NaN for NaN.
    gelu,    ///< x * (1 + erf(x / sqrt(2))) / 2
    silu,    ///< x / (1 + e^-x)
    tanh,    ///< The hyperbolic tangent.
    sigmoid, ///< 1 / (1 + e^-x)
};
BOOST_DESCRIBE_ENUM(activation, none, relu, gelu, silu, tanh, sigmoid)

constexpr bool valid(activation a) noexcept
{
    return a <= activation::sigmoid;
}

namespace detail {

inline error_code check_matrix(std::string_view op, std::uint64_t rows, std::uint64_t columns) noexcept
{
    if (rows == 0)
        return coaccel::detail::is_zero(op, "rows");
    return columns == 0 ? coaccel::detail::is_zero(op, "columns") : error_code{};
}

inline error_code check_row_distance(std::string_view op, std::string_view field, std::uint64_t ld,
                                     std::uint64_t columns) noexcept
{
    if (ld == 0 || ld >= columns)
        return {};
    return coaccel::detail::op_error(errc::leading_dimension, op,
                                     {field, " is ", ld, ", a row has ", columns, " elements"});
}

inline error_code check_norm(std::string_view op, std::uint64_t rows, std::uint64_t columns, double epsilon) noexcept
{
    if (auto ec = check_matrix(op, rows, columns))
        return ec;
    if (std::isfinite(epsilon) && epsilon >= 0)
        return {};
    return coaccel::detail::op_error(errc::invalid_argument, op, {"epsilon is negative or not a finite number"});
}

} // namespace detail

/// y = what(x + bias), for a matrix x and one bias for each column.
template <floating T>
struct bias_activation {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                            ///< The matrix.
    in<T> bias;                         ///< One element for each column.
    inout<T> y;                         ///< The result, as large as x.
    std::uint64_t rows = 0;             ///< The number of rows.
    std::uint64_t columns = 0;          ///< The number of columns.
    activation what = activation::none; ///< The function.
    std::uint64_t ldx = 0;              ///< The distance between rows of x; zero: columns, packed.
    std::uint64_t ldy = 0;              ///< The distance between rows of y; zero: columns, packed.

    /// The layouts of x, bias and y.
    constexpr layout<3> shape() const noexcept
    {
        const auto packed = layout<3>::matrix(rows, columns).row(1);
        return packed.operand(0, {ldx == 0 ? columns : ldx, 1}).operand(2, {ldy == 0 ? columns : ldy, 1});
    }

    error_code check() const noexcept
    {
        if (auto ec = detail::check_matrix(name, rows, columns))
            return ec;
        if (!valid(what))
            return coaccel::detail::not_enumerated(name, "what", static_cast<unsigned>(what), "prim::activation");
        if (auto ec = detail::check_row_distance(name, "ldx", ldx, columns))
            return ec;
        if (auto ec = detail::check_row_distance(name, "ldy", ldy, columns))
            return ec;
        return detail::check_layout(name, shape(), {{"x", x.raw}, {"bias", bias.raw}, {"y", y.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(2, {rows, columns}, y.size()); }
    std::uint64_t work() const noexcept { return static_cast<std::uint64_t>(what); } ///< Tells apart estimates.

    COACCEL_PURE_OP(prim, bias_activation, void, x, bias, y, rows, columns, what, ldx, ldy)
};

/// y = exp(x) / the sum of exp(x) along an axis, computed without overflow. The axis has n elements; the packed tensors
/// have the shape outer x n x inner. A row with NaN or +infinity, or of -infinity only, becomes NaN.
template <floating T>
struct softmax {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                 ///< The elements.
    inout<T> y;              ///< The results.
    std::uint64_t n = 0;     ///< The number of elements along the axis.
    std::uint64_t outer = 1; ///< The product of the dimensions before the axis, such as the number of rows.
    std::uint64_t inner = 1; ///< The product of the dimensions after the axis.

    error_code check() const noexcept { return detail::check_along_axis(*this); }

    bool overwrites() const noexcept { return detail::covers(3, {outer, n, inner}, y.size()); }

    COACCEL_PURE_OP(prim, softmax, void, x, y, n, outer, inner)
};

/// y = x - log(the sum of exp(x)) along an axis: the logarithm of `softmax`, which also is finite where that is 0.
template <floating T>
struct log_softmax {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                 ///< The elements.
    inout<T> y;              ///< The results.
    std::uint64_t n = 0;     ///< The number of elements along the axis.
    std::uint64_t outer = 1; ///< The product of the dimensions before the axis, such as the number of rows.
    std::uint64_t inner = 1; ///< The product of the dimensions after the axis.

    error_code check() const noexcept { return detail::check_along_axis(*this); }

    bool overwrites() const noexcept { return detail::covers(3, {outer, n, inner}, y.size()); }

    COACCEL_PURE_OP(prim, log_softmax, void, x, y, n, outer, inner)
};

/// For each row of a packed matrix: y = (x - mean) / sqrt(variance + epsilon) * scale + shift. The variance is that of
/// the row itself (divided by the number of columns).
template <floating T>
struct layer_norm {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                   ///< The matrix.
    in<T> scale;               ///< One factor for each column.
    in<T> shift;               ///< One summand for each column.
    inout<T> y;                ///< The result.
    std::uint64_t rows = 0;    ///< The number of rows.
    std::uint64_t columns = 0; ///< The number of columns.
    double epsilon = 1e-5;     ///< Added to the variance; not negative.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_norm(name, rows, columns, epsilon))
            return ec;
        return detail::check_layout(name, layout<4>::matrix(rows, columns).row(1).row(2),
                                    {{"x", x.raw}, {"scale", scale.raw}, {"shift", shift.raw}, {"y", y.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(2, {rows, columns}, y.size()); }

    COACCEL_PURE_OP(prim, layer_norm, void, x, scale, shift, y, rows, columns, epsilon)
};

/// For each row of a packed matrix: y = x / sqrt(mean of x^2 + epsilon) * scale.
template <floating T>
struct rms_norm {
    using value_type = T;
    static constexpr bool may_overlap = true;

    in<T> x;                   ///< The matrix.
    in<T> scale;               ///< One factor for each column.
    inout<T> y;                ///< The result.
    std::uint64_t rows = 0;    ///< The number of rows.
    std::uint64_t columns = 0; ///< The number of columns.
    double epsilon = 1e-5;     ///< Added to the mean of the squares; not negative.

    error_code check() const noexcept
    {
        if (auto ec = detail::check_norm(name, rows, columns, epsilon))
            return ec;
        return detail::check_layout(name, layout<3>::matrix(rows, columns).row(1),
                                    {{"x", x.raw}, {"scale", scale.raw}, {"y", y.raw}});
    }

    bool overwrites() const noexcept { return detail::covers(2, {rows, columns}, y.size()); }

    COACCEL_PURE_OP(prim, rms_norm, void, x, scale, y, rows, columns, epsilon)
};

/// The ops of this header for one element type.
template <floating T>
using rows_for = type_list<bias_activation<T>, softmax<T>, log_softmax<T>, layer_norm<T>, rms_norm<T>>;

} // namespace coaccel::prim

#endif
