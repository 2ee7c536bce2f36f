// The functions of the elementwise ops, on the type in which they are computed: float, double or an integer. The host
// backend compiles this file as C++ (functions.hpp), the CUDA backend has its text compiled by NVRTC, so both agree
// about special cases. It includes nothing: what it needs is declared before it.

namespace coaccel_prim {

template <class C>
struct unsigned_of;
template <>
struct unsigned_of<i8> {
    typedef u8 type;
};
template <>
struct unsigned_of<i16> {
    typedef u16 type;
};
template <>
struct unsigned_of<i32> {
    typedef u32 type;
};
template <>
struct unsigned_of<i64> {
    typedef u64 type;
};
template <>
struct unsigned_of<u8> {
    typedef u8 type;
};
template <>
struct unsigned_of<u16> {
    typedef u16 type;
};
template <>
struct unsigned_of<u32> {
    typedef u32 type;
};
template <>
struct unsigned_of<u64> {
    typedef u64 type;
};

// Arithmetic that wraps around: in 64 unsigned bits, because u16 would be promoted to int, whose overflow is undefined.
template <class C>
COACCEL_PRIM_FUNCTION C wrapped(u64 x)
{
    return static_cast<C>(static_cast<typename unsigned_of<C>::type>(x));
}

template <class C>
COACCEL_PRIM_FUNCTION bool is_nan(C x)
{
    return x != x;
}

template <class C>
COACCEL_PRIM_FUNCTION C lesser(C a, C b)
{
    return a < b || is_nan(a) ? a : b;
}

template <class C>
COACCEL_PRIM_FUNCTION C greater(C a, C b)
{
    return a > b || is_nan(a) ? a : b;
}

template <class C>
COACCEL_PRIM_FUNCTION C sigmoid_of(C x)
{
    return C(1) / (C(1) + exp(-x));
}

// An expression in x for each function.
#define COACCEL_PRIM_UNARY(name, expression)                                                                           \
    struct name {                                                                                                      \
        template <class C>                                                                                             \
        COACCEL_PRIM_FUNCTION C of(C x)                                                                                \
        {                                                                                                              \
            return expression;                                                                                         \
        }                                                                                                              \
    };

COACCEL_PRIM_UNARY(real_neg, -x)
COACCEL_PRIM_UNARY(real_abs, fabs(x))
COACCEL_PRIM_UNARY(real_sqrt, sqrt(x))
COACCEL_PRIM_UNARY(real_rsqrt, C(1) / sqrt(x))
COACCEL_PRIM_UNARY(real_exp, exp(x))
COACCEL_PRIM_UNARY(real_log, log(x))
COACCEL_PRIM_UNARY(real_log1p, log1p(x))
COACCEL_PRIM_UNARY(real_expm1, expm1(x))
COACCEL_PRIM_UNARY(real_sin, sin(x))
COACCEL_PRIM_UNARY(real_cos, cos(x))
COACCEL_PRIM_UNARY(real_tan, tan(x))
COACCEL_PRIM_UNARY(real_tanh, tanh(x))
COACCEL_PRIM_UNARY(real_sigmoid, sigmoid_of(x))
COACCEL_PRIM_UNARY(real_erf, erf(x))
COACCEL_PRIM_UNARY(real_relu, x < C(0) ? C(0) : x)
COACCEL_PRIM_UNARY(real_gelu, C(0.5) * x * (C(1) + erf(x * C(0.70710678118654752440))))
COACCEL_PRIM_UNARY(real_silu, x / (C(1) + exp(-x)))
COACCEL_PRIM_UNARY(real_floor, floor(x))
COACCEL_PRIM_UNARY(real_ceil, ceil(x))
COACCEL_PRIM_UNARY(real_round, round(x))
COACCEL_PRIM_UNARY(real_sign, x > C(0) ? C(1) : x < C(0) ? C(-1) : x)
COACCEL_PRIM_UNARY(real_square, x * x)
COACCEL_PRIM_UNARY(real_reciprocal, C(1) / x)
// For bias_activation.
COACCEL_PRIM_UNARY(real_none, x)

COACCEL_PRIM_UNARY(integer_neg, wrapped<C>(0 - static_cast<u64>(x)))
COACCEL_PRIM_UNARY(integer_abs, x < C(0) ? wrapped<C>(0 - static_cast<u64>(x)) : x)
COACCEL_PRIM_UNARY(integer_relu, x < C(0) ? C(0) : x)
COACCEL_PRIM_UNARY(integer_sign, x > C(0) ? C(1) : x < C(0) ? static_cast<C>(-1) : C(0))
COACCEL_PRIM_UNARY(integer_square, wrapped<C>(static_cast<u64>(x) * static_cast<u64>(x)))
COACCEL_PRIM_UNARY(integer_bit_not, wrapped<C>(~static_cast<u64>(x)))
COACCEL_PRIM_UNARY(integer_logical_not, x == C(0) ? C(1) : C(0))

template <class C>
COACCEL_PRIM_FUNCTION C quotient(C a, C b)
{
    if (b == C(0))
        return C(0);
    // The quotient of the least number and -1 overflows.
    if (static_cast<C>(-1) < C(0) && b == static_cast<C>(-1))
        return integer_neg::of(a);
    return static_cast<C>(a / b);
}

template <class C>
COACCEL_PRIM_FUNCTION C remainder_of(C a, C b)
{
    if (b == C(0) || (static_cast<C>(-1) < C(0) && b == static_cast<C>(-1)))
        return C(0);
    return static_cast<C>(a % b);
}

template <class C>
COACCEL_PRIM_FUNCTION C power(C a, C b)
{
    if (b < C(0)) {
        if (a == C(1))
            return C(1);
        if (a == static_cast<C>(-1))
            return b % C(2) == C(0) ? C(1) : a;
        return C(0);
    }
    u64 result = 1;
    u64 base = static_cast<u64>(a);
    for (u64 rest = static_cast<u64>(b); rest != 0; rest >>= 1) {
        if (rest & 1)
            result *= base;
        base *= base;
    }
    return wrapped<C>(result);
}

// An expression in a and b for each function.
#define COACCEL_PRIM_BINARY(name, expression)                                                                          \
    struct name {                                                                                                      \
        template <class C>                                                                                             \
        COACCEL_PRIM_FUNCTION C of(C a, C b)                                                                           \
        {                                                                                                              \
            return expression;                                                                                         \
        }                                                                                                              \
    };

COACCEL_PRIM_BINARY(real2_add, a + b)
COACCEL_PRIM_BINARY(real2_sub, a - b)
COACCEL_PRIM_BINARY(real2_mul, a * b)
COACCEL_PRIM_BINARY(real2_div, a / b)
COACCEL_PRIM_BINARY(real2_min, lesser(a, b))
COACCEL_PRIM_BINARY(real2_max, greater(a, b))
COACCEL_PRIM_BINARY(real2_pow, pow(a, b))
COACCEL_PRIM_BINARY(real2_mod, fmod(a, b))
COACCEL_PRIM_BINARY(real2_atan2, atan2(a, b))
COACCEL_PRIM_BINARY(real2_hypot, hypot(a, b))

COACCEL_PRIM_BINARY(integer2_add, wrapped<C>(static_cast<u64>(a) + static_cast<u64>(b)))
COACCEL_PRIM_BINARY(integer2_sub, wrapped<C>(static_cast<u64>(a) - static_cast<u64>(b)))
COACCEL_PRIM_BINARY(integer2_mul, wrapped<C>(static_cast<u64>(a) * static_cast<u64>(b)))
COACCEL_PRIM_BINARY(integer2_div, quotient(a, b))
COACCEL_PRIM_BINARY(integer2_min, b < a ? b : a)
COACCEL_PRIM_BINARY(integer2_max, b > a ? b : a)
COACCEL_PRIM_BINARY(integer2_pow, power(a, b))
COACCEL_PRIM_BINARY(integer2_mod, remainder_of(a, b))
COACCEL_PRIM_BINARY(integer2_bit_and, static_cast<C>(a & b))
COACCEL_PRIM_BINARY(integer2_bit_or, static_cast<C>(a | b))
COACCEL_PRIM_BINARY(integer2_bit_xor, static_cast<C>(a ^ b))
COACCEL_PRIM_BINARY(integer2_logical_and, a != C(0) && b != C(0) ? C(1) : C(0))
COACCEL_PRIM_BINARY(integer2_logical_or, a != C(0) || b != C(0) ? C(1) : C(0))
COACCEL_PRIM_BINARY(integer2_logical_xor, (a != C(0)) != (b != C(0)) ? C(1) : C(0))

#define COACCEL_PRIM_COMPARISON(name, expression)                                                                      \
    struct name {                                                                                                      \
        template <class C>                                                                                             \
        COACCEL_PRIM_FUNCTION bool of(C a, C b)                                                                        \
        {                                                                                                              \
            return expression;                                                                                         \
        }                                                                                                              \
    };

COACCEL_PRIM_COMPARISON(compare_equal, a == b)
COACCEL_PRIM_COMPARISON(compare_not_equal, a != b)
COACCEL_PRIM_COMPARISON(compare_less, a < b)
COACCEL_PRIM_COMPARISON(compare_less_equal, a <= b)
COACCEL_PRIM_COMPARISON(compare_greater, a > b)
COACCEL_PRIM_COMPARISON(compare_greater_equal, a >= b)

COACCEL_PRIM_FUNCTION float multiply_add(float a, float b, float c)
{
    return fma(a, b, c);
}

COACCEL_PRIM_FUNCTION double multiply_add(double a, double b, double c)
{
    return fma(a, b, c);
}

template <class C>
COACCEL_PRIM_FUNCTION C multiply_add(C a, C b, C c)
{
    return wrapped<C>(static_cast<u64>(a) * static_cast<u64>(b) + static_cast<u64>(c));
}

struct ternary_multiply_add {
    template <class C>
    COACCEL_PRIM_FUNCTION C of(C a, C b, C c)
    {
        return multiply_add(a, b, c);
    }
};

struct ternary_clamp {
    template <class C>
    COACCEL_PRIM_FUNCTION C of(C a, C b, C c)
    {
        return lesser(greater(a, b), c);
    }
};

COACCEL_PRIM_FUNCTION double sequence_element(double start, double step, u64 i)
{
    return start + rounded_product(static_cast<double>(i), step);
}

// Real numbers as integers: towards zero, limited to the range, 0 for NaN. Least and most are given, and `end` is the
// first number above the range, which every type of real numbers can represent or exceeds.
template <class To, class From>
COACCEL_PRIM_FUNCTION To limited(From x, To least, To most, From end)
{
    if (is_nan(x))
        return To(0);
    if (x >= end)
        return most;
    if (x <= static_cast<From>(least))
        return least;
    return static_cast<To>(x);
}

} // namespace coaccel_prim
