#ifndef COACCEL_OPS_PRIM_FUNCTIONS_HPP
#define COACCEL_OPS_PRIM_FUNCTIONS_HPP

#include <coaccel/ops/prim/types.hpp>

#include <boost/describe/enum.hpp>

#include <cstdint>
#include <type_traits>

// The functions of elementwise ops. Those of real numbers and of integers are separate enumerations, so that a function
// that a type does not have does not compile.
namespace coaccel::prim {

/// Functions of a real number. Special cases are those of the functions of cmath with these names.
enum class real_function : std::uint8_t {
    neg,        ///< -x
    abs,        ///< |x|
    sqrt,       ///< The square root.
    rsqrt,      ///< 1 / sqrt(x)
    exp,        ///< e^x
    log,        ///< The natural logarithm.
    log1p,      ///< log(1 + x), also for small x.
    expm1,      ///< e^x - 1, also for small x.
    sin,        ///< The sine.
    cos,        ///< The cosine.
    tan,        ///< The tangent.
    tanh,       ///< The hyperbolic tangent.
    sigmoid,    ///< 1 / (1 + e^-x)
    erf,        ///< The error function.
    relu,       ///< The greater one of x and 0; NaN for NaN.
    gelu,       ///< x * (1 + erf(x / sqrt(2))) / 2
    silu,       ///< x / (1 + e^-x)
    floor,      ///< The largest integer that is not greater.
    ceil,       ///< The smallest integer that is not less.
    round,      ///< The nearest integer; halfway cases away from zero.
    sign,       ///< -1, 1, or x itself for zeros and NaN.
    square,     ///< x * x
    reciprocal, ///< 1 / x
};
BOOST_DESCRIBE_ENUM(real_function, neg, abs, sqrt, rsqrt, exp, log, log1p, expm1, sin, cos, tan, tanh, sigmoid, erf,
                    relu, gelu, silu, floor, ceil, round, sign, square, reciprocal)

/// Functions of an integer.
enum class integer_function : std::uint8_t {
    neg,         ///< -x, which wraps around.
    abs,         ///< |x|; the least number stays as it is.
    relu,        ///< The greater one of x and 0.
    sign,        ///< -1, 0 or 1.
    square,      ///< x * x, which wraps around.
    bit_not,     ///< All bits inverted.
    logical_not, ///< 1 for 0, else 0.
};
BOOST_DESCRIBE_ENUM(integer_function, neg, abs, relu, sign, square, bit_not, logical_not)

/// Functions of two real numbers.
enum class real_binary : std::uint8_t {
    add,   ///< a + b
    sub,   ///< a - b
    mul,   ///< a * b
    div,   ///< a / b
    min,   ///< The lesser one; NaN if one of them is NaN.
    max,   ///< The greater one; NaN if one of them is NaN.
    pow,   ///< a^b
    mod,   ///< As std::fmod: the remainder has the sign of a.
    atan2, ///< As std::atan2(a, b).
    hypot, ///< sqrt(a^2 + b^2), without overflow in between.
};
BOOST_DESCRIBE_ENUM(real_binary, add, sub, mul, div, min, max, pow, mod, atan2, hypot)

/// Functions of two integers.
enum class integer_binary : std::uint8_t {
    add,         ///< a + b, which wraps around.
    sub,         ///< a - b, which wraps around.
    mul,         ///< a * b, which wraps around.
    div,         ///< a / b, towards zero; 0 if b is 0.
    min,         ///< The lesser one.
    max,         ///< The greater one.
    pow,         ///< a^b, which wraps around; with a negative b the integer part of the quotient, 0 if a is 0.
    mod,         ///< The remainder of the division, with the sign of a; 0 if b is 0.
    bit_and,     ///< Of each bit.
    bit_or,      ///< Of each bit.
    bit_xor,     ///< Of each bit.
    logical_and, ///< 1 if neither is 0, else 0.
    logical_or,  ///< 0 if both are 0, else 1.
    logical_xor, ///< 1 if exactly one is 0, else 0.
};
BOOST_DESCRIBE_ENUM(integer_binary, add, sub, mul, div, min, max, pow, mod, bit_and, bit_or, bit_xor, logical_and,
                    logical_or, logical_xor)

/// Comparisons. With NaN only `not_equal` is true.
enum class comparison : std::uint8_t {
    equal,         ///< a == b
    not_equal,     ///< a != b
    less,          ///< a < b
    less_equal,    ///< a <= b
    greater,       ///< a > b
    greater_equal, ///< a >= b
};
BOOST_DESCRIBE_ENUM(comparison, equal, not_equal, less, less_equal, greater, greater_equal)

/// Functions of three numbers.
enum class ternary_function : std::uint8_t {
    multiply_add, ///< a * b + c; rounded once for real numbers, wraps around for integers.
    clamp,        ///< The greater one of a and b, at most c; NaN if one of them is NaN.
};
BOOST_DESCRIBE_ENUM(ternary_function, multiply_add, clamp)

/// The functions that elements of type T have.
template <number T>
using unary_function = std::conditional_t<floating<T>, real_function, integer_function>;

/// \copydoc unary_function
template <number T>
using binary_function = std::conditional_t<floating<T>, real_binary, integer_binary>;

constexpr bool valid(real_function f) noexcept
{
    return f <= real_function::reciprocal;
}

constexpr bool valid(integer_function f) noexcept
{
    return f <= integer_function::logical_not;
}

constexpr bool valid(real_binary f) noexcept
{
    return f <= real_binary::hypot;
}

constexpr bool valid(integer_binary f) noexcept
{
    return f <= integer_binary::logical_xor;
}

constexpr bool valid(comparison f) noexcept
{
    return f <= comparison::greater_equal;
}

constexpr bool valid(ternary_function f) noexcept
{
    return f <= ternary_function::clamp;
}

} // namespace coaccel::prim

#endif
