#ifndef COACCEL_CORE_DTYPE_HPP
#define COACCEL_CORE_DTYPE_HPP

#include <coaccel/core/bfloat16.hpp>
#include <coaccel/core/float8.hpp>
#include <coaccel/core/half.hpp>
#include <coaccel/core/result.hpp>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace coaccel {

/// The element types a buffer can hold. The values are part of the worker's wire protocol; zero is not used.
enum class dtype : std::uint8_t {
    f16 = 1, ///< half
    bf16,    ///< bfloat16
    f32,     ///< float
    f64,     ///< double
    i8,      ///< std::int8_t
    i16,     ///< std::int16_t
    i32,     ///< std::int32_t
    i64,     ///< std::int64_t
    u8,      ///< std::uint8_t
    u16,     ///< std::uint16_t
    u32,     ///< std::uint32_t
    u64,     ///< std::uint64_t
    f8_e4m3, ///< float8_e4m3
    f8_e5m2, ///< float8_e5m2
    c64,     ///< std::complex<float>
    c128,    ///< std::complex<double>
};

/// A list of types, for code that is instantiated once for each.
template <class... Ts>
struct type_list {
    static constexpr std::size_t size = sizeof...(Ts); ///< The number of types.
};

/// Every element type, in the order of dtype.
using element_types = type_list<half, bfloat16, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                                std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float8_e4m3, float8_e5m2,
                                std::complex<float>, std::complex<double>>;

namespace detail {

template <class T, class... Ts>
consteval std::uint8_t dtype_value(type_list<Ts...>)
{
    std::uint8_t position = 0;
    std::uint8_t found = 0;
    ((++position, found = std::same_as<T, Ts> ? position : found), ...);
    return found;
}

template <class... Ts>
constexpr std::size_t element_size(std::size_t index, type_list<Ts...>) noexcept
{
    constexpr std::size_t sizes[] = {sizeof(Ts)...};
    return index < sizeof...(Ts) ? sizes[index] : 0;
}

template <dtype D, class... Ts>
std::tuple_element_t<std::size_t(D) - 1, std::tuple<Ts...>> element_at(type_list<Ts...>);

} // namespace detail

/// Types that have a dtype. Neither cv-qualified types nor std::byte are among them.
template <class T>
concept element = detail::dtype_value<T>(element_types{}) != 0;

/// The dtype of an element type.
template <element T>
inline constexpr dtype dtype_v = dtype{detail::dtype_value<T>(element_types{})};

/// \copydoc dtype_v
template <element T>
constexpr dtype dtype_of() noexcept
{
    return dtype_v<T>;
}

/// The element type of a dtype.
template <dtype D>
using element_t = decltype(detail::element_at<D>(element_types{}));

/// Bytes in one element; 0 for a value that is not a dtype.
constexpr std::size_t size_of(dtype d) noexcept
{
    return detail::element_size(std::size_t(d) - 1, element_types{});
}

/// True for the complex types.
constexpr bool is_complex(dtype d) noexcept
{
    return d == dtype::c64 || d == dtype::c128;
}

/// True for the integers, signed and unsigned.
constexpr bool is_integral(dtype d) noexcept
{
    return d >= dtype::i8 && d <= dtype::u64;
}

/// True for the real floating-point types, of any width.
constexpr bool is_floating(dtype d) noexcept
{
    return (d >= dtype::f16 && d <= dtype::f64) || d == dtype::f8_e4m3 || d == dtype::f8_e5m2;
}

/// The enumerator's name, such as "f32"; "unknown" for a value that is not a dtype.
COACCEL_DECL std::string_view to_string(dtype d) noexcept;

/// The dtype with this name.
///
/// Errors: errc::invalid_argument when there is none.
COACCEL_DECL result<dtype> to_dtype(std::string_view name) noexcept;

} // namespace coaccel

#endif
