#ifndef COACCEL_OPS_PRIM_TYPES_HPP
#define COACCEL_OPS_PRIM_TYPES_HPP

#include <coaccel/core/dtype.hpp>

#include <concepts>
#include <type_traits>

namespace coaccel::prim {

/// Real numbers of 16 bits and more. Elements of 16 bits are computed in f32 and rounded once.
template <class T>
concept floating =
    std::same_as<T, half> || std::same_as<T, bfloat16> || std::same_as<T, float> || std::same_as<T, double>;

/// The integers. Their arithmetic wraps around.
template <class T>
concept integer = element<T> && std::is_integral_v<T>;

/// The types with arithmetic.
template <class T>
concept number = floating<T> || integer<T>;

namespace detail {

template <class T>
inline constexpr bool is_complex_element = element<T> && !integer<T> && !std::is_convertible_v<T, float>;

} // namespace detail

/// Pairs of types that `cast` converts: all, except complex numbers to real ones.
template <class From, class To>
concept castable =
    element<From> && element<To> && (!detail::is_complex_element<From> || detail::is_complex_element<To>);

/// The types that all ops on numbers have.
using floating_types = type_list<half, bfloat16, float, double>;
/// \copydoc floating_types
using integer_types = type_list<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                                std::uint32_t, std::uint64_t>;

} // namespace coaccel::prim

#endif
