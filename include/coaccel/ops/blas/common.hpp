#ifndef COACCEL_OPS_BLAS_COMMON_HPP
#define COACCEL_OPS_BLAS_COMMON_HPP

#include <coaccel/core/detail/shape.hpp>
#include <coaccel/core/op.hpp>

#include <boost/describe/enum.hpp>

#include <array>
#include <complex>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace coaccel::blas {

/// The real element types of BLAS.
template <class T>
concept real = std::same_as<T, float> || std::same_as<T, double>;

/// The complex element types of BLAS.
template <class T>
concept complex_element = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

/// The element types of BLAS.
template <class T>
concept dense_element = real<T> || complex_element<T>;

/// Element types of gemm; the 16-bit types accumulate in f32.
template <class T>
concept gemm_element = dense_element<T> || std::same_as<T, half> || std::same_as<T, bfloat16>;

/// Element types of the factors of gemm_ex.
template <class T>
concept mixed_element = std::same_as<T, half> || std::same_as<T, bfloat16> || std::same_as<T, std::int8_t>;

/// The type of alpha, beta and accumulation for elements of type T.
template <class T>
using scalar = std::conditional_t<dense_element<T>, T, float>;

/// The type of the real part of T; T itself if it is real.
template <dense_element T>
using real_part = std::conditional_t<std::same_as<T, float> || std::same_as<T, std::complex<float>>, float, double>;

/// Whether an operand is used as it is or transposed.
enum class transpose : std::uint8_t {
    no,        ///< As it is.
    yes,       ///< Transposed.
    conjugate, ///< Transposed, with conjugate elements. The same as `yes` if the elements are real.
};
BOOST_DESCRIBE_ENUM(transpose, no, yes, conjugate)

constexpr bool valid(transpose t) noexcept
{
    return t <= transpose::conjugate;
}

/// The triangle of a square matrix that is used. The other one is neither read nor written.
enum class uplo : std::uint8_t {
    lower, ///< The elements (i, j) with i >= j.
    upper, ///< The elements (i, j) with i <= j.
};
BOOST_DESCRIBE_ENUM(uplo, lower, upper)

constexpr bool valid(uplo u) noexcept
{
    return u <= uplo::upper;
}

/// The diagonal of a triangular matrix.
enum class diag : std::uint8_t {
    non_unit, ///< It is read.
    unit,     ///< All its elements are one; it is not read.
};
BOOST_DESCRIBE_ENUM(diag, non_unit, unit)

constexpr bool valid(diag d) noexcept
{
    return d <= diag::unit;
}

/// The side of a product on which the special matrix is.
enum class side : std::uint8_t {
    left,  ///< A * B
    right, ///< B * A
};
BOOST_DESCRIBE_ENUM(side, left, right)

constexpr bool valid(side s) noexcept
{
    return s <= side::right;
}

/// The precision in which products are computed.
enum class math : std::uint8_t {
    /// The precision of the accumulator type.
    standard,
    /// The factors of f32 products may be rounded to TF32 (10 fraction bits) on hardware where this is faster. Other
    /// types and the host backend compute as with `standard`.
    tf32,
    /// As `standard`, and without algorithms that round differently from the plain order of operations, for numerical
    /// tests. May be much slower. The host backend computes as with `standard`.
    pedantic,
};
BOOST_DESCRIBE_ENUM(math, standard, tf32, pedantic)

constexpr bool valid(math m) noexcept
{
    return m <= math::pedantic;
}

/// A function that is applied to each element of a result.
enum class activation : std::uint8_t {
    none, ///< x
    relu, ///< max(x, 0); unspecified for NaN
    /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))), the approximation that cuBLASLt computes. It
    /// differs by less than 0.0005 from gelu with erf, which prim::bias_activation computes.
    gelu,
};
BOOST_DESCRIBE_ENUM(activation, none, relu, gelu)

constexpr bool valid(activation a) noexcept
{
    return a <= activation::gelu;
}

/// How the elements of matrices follow each other in memory.
enum class order : std::uint8_t {
    column_major, ///< Column by column, as in BLAS.
    row_major,    ///< Row by row, as in C.
};
BOOST_DESCRIBE_ENUM(order, column_major, row_major)

constexpr bool valid(order o) noexcept
{
    return o <= order::row_major;
}

namespace detail {

using coaccel::detail::is_zero;
using coaccel::detail::not_enumerated;
using coaccel::detail::op_error;

/// The fields that can be parameters of a plan.
inline constexpr std::array<std::string_view, 1> alpha_only{"alpha"};
inline constexpr std::array<std::string_view, 2> alpha_and_beta{"alpha", "beta"};

// The type's name in messages.
constexpr std::string_view type_name(transpose) noexcept
{
    return "blas::transpose";
}

constexpr std::string_view type_name(uplo) noexcept
{
    return "blas::uplo";
}

constexpr std::string_view type_name(diag) noexcept
{
    return "blas::diag";
}

constexpr std::string_view type_name(side) noexcept
{
    return "blas::side";
}

constexpr std::string_view type_name(math) noexcept
{
    return "blas::math";
}

constexpr std::string_view type_name(activation) noexcept
{
    return "blas::activation";
}

constexpr std::string_view type_name(order) noexcept
{
    return "blas::order";
}

template <class Enum>
error_code check_value(std::string_view op, std::string_view field, Enum value) noexcept
{
    return valid(value) ? error_code{} : not_enumerated(op, field, static_cast<unsigned>(value), type_name(value));
}

/// Calls `f.operator()<T>()` for each type of dense_element.
template <class F>
void for_each_dense(const F& f)
{
    f.template operator()<float>();
    f.template operator()<double>();
    f.template operator()<std::complex<float>>();
    f.template operator()<std::complex<double>>();
}

/// The first failure of several checks. Each is made even if an earlier one has failed.
inline error_code first_error(std::initializer_list<error_code> checks) noexcept
{
    for (const error_code& ec : checks)
        if (ec)
            return ec;
    return {};
}

} // namespace detail

} // namespace coaccel::blas

#endif
