#ifndef COACCEL_OPS_BLAS_COMMON_HPP
#define COACCEL_OPS_BLAS_COMMON_HPP

#include <coaccel/core/detail/shape.hpp>
#include <coaccel/core/op.hpp>

#include <boost/describe/enum.hpp>

#include <array>
#include <string_view>
#include <type_traits>

namespace coaccel::blas {

/// Element types of levels 1 and 2.
template <class T>
concept real = std::same_as<T, float> || std::same_as<T, double>;

/// Element types of gemm; the 16-bit types accumulate in f32.
template <class T>
concept gemm_element = real<T> || std::same_as<T, half> || std::same_as<T, bfloat16>;

/// The type of alpha, beta and accumulation for elements of type T.
template <class T>
using scalar = std::conditional_t<real<T>, T, float>;

/// Whether an operand is used as it is or transposed.
enum class transpose : std::uint8_t { no, yes };
BOOST_DESCRIBE_ENUM(transpose, no, yes)

constexpr bool valid(transpose t) noexcept
{
    return t == transpose::no || t == transpose::yes;
}

/// The precision in which products are computed.
enum class math : std::uint8_t {
    /// The precision of the accumulator type.
    standard,
    /// The factors of f32 products may be rounded to TF32 (10 fraction bits) on hardware where this is faster. Other
    /// types and the host backend compute as with `standard`.
    tf32,
};
BOOST_DESCRIBE_ENUM(math, standard, tf32)

constexpr bool valid(math m) noexcept
{
    return m == math::standard || m == math::tf32;
}

namespace detail {

using coaccel::detail::is_zero;
using coaccel::detail::not_enumerated;
using coaccel::detail::op_error;

/// The fields that can be parameters of a plan.
inline constexpr std::array<std::string_view, 1> alpha_only{"alpha"};
inline constexpr std::array<std::string_view, 2> alpha_and_beta{"alpha", "beta"};

inline error_code check_value(std::string_view op, std::string_view field, transpose t) noexcept
{
    return valid(t) ? error_code{} : not_enumerated(op, field, static_cast<unsigned>(t), "blas::transpose");
}

inline error_code check_value(std::string_view op, std::string_view field, math m) noexcept
{
    return valid(m) ? error_code{} : not_enumerated(op, field, static_cast<unsigned>(m), "blas::math");
}

} // namespace detail

} // namespace coaccel::blas

#endif
