#ifndef COACCEL_TEST_UNIT_CORE_SMALL_FLOAT_HPP
#define COACCEL_TEST_UNIT_CORE_SMALL_FLOAT_HPP

#include <coaccel/core/detail/small_float.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <type_traits>

namespace coaccel::small_float_checks {

/// A format described independently of the library: widths, and whether the top exponent is reserved.
struct layout {
    int exponent_bits;
    int mantissa_bits;
    bool infinities;

    constexpr unsigned sign() const { return 1u << (exponent_bits + mantissa_bits); }
    constexpr unsigned patterns() const { return 2 * sign(); }
    constexpr unsigned top() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
    constexpr unsigned largest() const { return infinities ? top() - 1 : sign() - 2; }
    constexpr bool is_nan(unsigned bits) const
    {
        const unsigned magnitude = bits & (sign() - 1);
        return infinities ? magnitude > top() : magnitude == sign() - 1;
    }

    /// The value by the textbook formula; for the pattern after the largest finite one, the value that it would have.
    double value(unsigned magnitude) const
    {
        const int bias = (1 << (exponent_bits - 1)) - 1;
        const int exponent = int(magnitude >> mantissa_bits);
        const unsigned mantissa = magnitude & ((1u << mantissa_bits) - 1);
        return exponent == 0 ? std::ldexp(double(mantissa), 1 - bias - mantissa_bits)
                             : std::ldexp(double(mantissa + (1u << mantissa_bits)), exponent - bias - mantissa_bits);
    }
};

/// Counts failures instead of asserting, for loops of many thousand steps.
struct tally {
    unsigned checked = 0;
    unsigned wrong = 0;
    unsigned first = 0;

    void expect(bool ok, unsigned bits)
    {
        ++checked;
        if (!ok && wrong++ == 0)
            first = bits;
    }

    void report(unsigned at_least) const
    {
        CAPTURE(first);
        CHECK(wrong == 0);
        CHECK(checked >= at_least);
    }
};

template <class T>
T make(unsigned bits)
{
    return T::from_bits(static_cast<typename T::bits_type>(bits));
}

template <class T>
void check_decoding(layout l)
{
    tally t;
    for (unsigned bits = 0; bits < l.patterns(); ++bits) {
        const unsigned magnitude = bits & (l.sign() - 1);
        const float x = make<T>(bits);
        t.expect(std::signbit(x) == (bits >= l.sign()), bits);
        if (l.is_nan(bits))
            t.expect(std::isnan(x) && isnan(make<T>(bits)) && !isinf(make<T>(bits)), bits);
        else if (magnitude > l.largest())
            t.expect(std::isinf(x) && isinf(make<T>(bits)) && !isnan(make<T>(bits)), bits);
        else
            t.expect(std::fabs(double(x)) == l.value(magnitude) && isfinite(make<T>(bits)), bits);
    }
    t.report(2 * l.patterns());
}

template <class T>
void check_round_trip(layout l)
{
    tally t;
    for (unsigned bits = 0; bits < l.patterns(); ++bits) {
        const float narrow = make<T>(bits);
        const T from_float = T::convert(narrow, overflow_rule::nonfinite);
        const T from_double = T::convert(double(narrow), overflow_rule::nonfinite);
        const unsigned quiet = l.is_nan(bits) ? 1u << (l.mantissa_bits - 1) : 0;
        t.expect(from_float.bits() == (bits | quiet), bits);
        t.expect(from_double.bits() == (bits | quiet), bits);
        t.expect((-make<T>(bits)).bits() == (bits ^ l.sign()), bits);
        t.expect(abs(make<T>(bits)).bits() == (bits & (l.sign() - 1)), bits);
    }
    t.report(4 * l.patterns());
}

template <class T, class Wide>
struct rounding_check {
    layout l;
    tally t;

    void expect(Wide magnitude, unsigned nearest)
    {
        const unsigned beyond = l.infinities ? l.top() : l.sign() - 1;
        const unsigned saturated = nearest > l.largest() ? l.largest() : nearest;
        const unsigned nonfinite = nearest > l.largest() ? beyond : nearest;
        const bool saturates = T::format::default_overflow == overflow_rule::saturate;
        for (const unsigned sign : {0u, l.sign()}) {
            const Wide x = sign ? -magnitude : magnitude;
            t.expect(T::convert(x, overflow_rule::saturate).bits() == (sign | saturated), nearest);
            t.expect(T::convert(x, overflow_rule::nonfinite).bits() == (sign | nonfinite), nearest);
            t.expect(T(x).bits() == (sign | (saturates ? saturated : nonfinite)), nearest);
        }
    }
};

/// Both sides of every point where the rounding changes, and the points themselves.
template <class T, class Wide>
void check_rounding(layout l)
{
    using limits = std::numeric_limits<Wide>;
    rounding_check<T, Wide> check{l, {}};
    for (unsigned i = 0; i <= l.largest(); ++i) {
        const Wide exact = Wide(l.value(i));
        const double middle = std::midpoint(l.value(i), l.value(i + 1));
        REQUIRE(double(Wide(middle)) == middle);
        check.expect(exact, i);
        check.expect(std::nextafter(exact, limits::infinity()), i);
        check.expect(std::nextafter(Wide(middle), Wide(0)), i);
        check.expect(Wide(middle), i % 2 == 0 ? i : i + 1);
        check.expect(std::nextafter(Wide(middle), limits::infinity()), i + 1);
    }
    check.expect(limits::infinity(), l.largest() + 1);
    check.expect(limits::max(), l.largest() + 1);
    check.expect(limits::denorm_min(), 0);
    check.t.report(30 * l.largest());
}

/// The doubles next to a tie that a float cannot distinguish from the tie.
template <class T>
void check_single_rounding_of_doubles(layout l)
{
    unsigned differs = 0;
    for (unsigned i = 0; i <= l.largest(); ++i) {
        const double middle = std::midpoint(l.value(i), l.value(i + 1));
        const double towards_odd = std::nextafter(middle, i % 2 == 0 ? std::numeric_limits<double>::infinity() : 0.0);
        REQUIRE(float(towards_odd) == float(middle));
        differs += T::convert(towards_odd, overflow_rule::nonfinite).bits() !=
                   T::convert(float(towards_odd), overflow_rule::nonfinite).bits();
    }
    CHECK(differs == l.largest() + 1);
}

template <class T>
void check_nans()
{
    for (const float sign : {1.0f, -1.0f}) {
        const float quiet = std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
        for (const T x : {T(quiet), T(double(quiet)), T::convert(quiet, overflow_rule::nonfinite)}) {
            CHECK(isnan(x));
            CHECK(std::signbit(float(x)) == (sign < 0));
            CHECK(x != x);
            CHECK((x <=> T(1.0f)) == std::partial_ordering::unordered);
        }
    }
    // The payload's upper bits are all zero here, and a truncated NaN must not become an infinity.
    CHECK(isnan(T(std::bit_cast<float>(0x7f800001u))));
    CHECK(isnan(T(std::bit_cast<double>(0x7ff0000000000001u))));
}

/// Every `stride`-th pair of patterns, against results computed in double and rounded once.
template <class T>
void check_arithmetic(layout l, unsigned stride)
{
    const auto same = [](T a, T b) { return a.bits() == b.bits() || (isnan(a) && isnan(b)); };
    tally t;
    for (unsigned i = 0; i < l.patterns(); i += stride) {
        for (unsigned j = 0; j < l.patterns(); j += stride) {
            const T a = make<T>(i);
            const T b = make<T>(j);
            const double x = a;
            const double y = b;
            t.expect(same(a + b, T(x + y)), i);
            t.expect(same(a - b, T(x - y)), i);
            t.expect(same(a * b, T(x * y)), i);
            if (y != 0)
                t.expect(same(a / b, T(x / y)), i);
            t.expect((a == b) == (x == y) && (a <=> b) == (x <=> y), i);
        }
    }
    t.report(1000);

    T x(2.0f);
    CHECK((x += T(1.0f)) == 3.0f);
    CHECK((x *= T(2.0f)) == 6.0f);
    CHECK((x -= T(2.0f)) == 4.0f);
    CHECK((x /= T(8.0f)) == 0.5f);
    CHECK(+x == 0.5f);
    CHECK(isinf(T(1.0f) / make<T>(0)) == (T::format::default_overflow == overflow_rule::nonfinite));
}

template <class T>
void check_integers()
{
    tally t;
    for (int i = -70000; i <= 70000; i += 7) {
        t.expect(T(i).bits() == T(double(i)).bits(), unsigned(i));
        t.expect(T(std::int16_t(i)).bits() == T(double(std::int16_t(i))).bits(), unsigned(i));
        t.expect(T(std::uint8_t(i)).bits() == T(double(std::uint8_t(i))).bits(), unsigned(i));
    }
    t.report(1000);
    CHECK(T(true) == 1.0f);
    CHECK(T(false) == 0.0f);
}

template <class T>
void check_limits(layout l)
{
    using limits = std::numeric_limits<T>;
    const double ten = 10.0;
    CHECK(double(limits::max()) == l.value(l.largest()));
    CHECK(double(limits::lowest()) == -l.value(l.largest()));
    CHECK(double(limits::min()) == l.value(1u << l.mantissa_bits));
    CHECK(double(limits::denorm_min()) == l.value(1));
    CHECK(double(limits::epsilon()) == std::ldexp(1.0, -l.mantissa_bits));
    CHECK(isnan(limits::quiet_NaN()));
    CHECK(limits::has_infinity == l.infinities);
    CHECK(isinf(limits::infinity()) == l.infinities);
    CHECK(limits::has_signaling_NaN == l.infinities);
    CHECK(isnan(limits::signaling_NaN()) == l.infinities);
    CHECK(double(limits::min()) == std::ldexp(1.0, limits::min_exponent - 1));
    CHECK(std::ilogb(double(limits::max())) == limits::max_exponent - 1);
    CHECK(limits::min_exponent10 == int(std::ceil(std::log10(double(limits::min())))));
    CHECK(limits::max_exponent10 == int(std::floor(std::log10(double(limits::max())))));
    CHECK(limits::digits10 == int(std::floor((limits::digits - 1) * std::log10(2.0))));
    CHECK(limits::max_digits10 == int(std::ceil(limits::digits * std::log10(2.0) + 1)));
    CHECK(std::pow(ten, limits::max_exponent10) <= double(limits::max()));

    CHECK(std::hash<T>{}(T(0.0f)) == std::hash<T>{}(T(-0.0f)));
    CHECK(std::hash<T>{}(T(1.0f)) != std::hash<T>{}(T(2.0f)));
}

template <class T>
constexpr bool has_the_traits_of_a_number()
{
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(std::is_trivially_default_constructible_v<T>);
    static_assert(std::is_standard_layout_v<T>);
    static_assert(sizeof(T) == sizeof(typename T::bits_type));
    static_assert(alignof(T) == alignof(typename T::bits_type));
    static_assert(std::is_convertible_v<T, float>);
    static_assert(std::is_constructible_v<T, float> && !std::is_convertible_v<float, T>);
    static_assert(std::is_constructible_v<T, double> && !std::is_convertible_v<double, T>);
    static_assert(std::is_constructible_v<T, int> && !std::is_convertible_v<int, T>);
    static_assert(!std::is_constructible_v<T, long double>);
    static_assert(std::is_same_v<decltype(T{} + T{}), T>);
    static_assert(std::is_same_v<decltype(T{} + 1.0f), float>);
    static_assert(std::is_same_v<decltype(T{} * 1.0), double>);
    static_assert(T{}.bits() == 0);
    static_assert(T(1.5f) + T(0.5f) == T(2));
    static_assert(T(1.5f) < T(2.0) && -T(1.5f) < T{} && abs(-T(1.5f)) == 1.5f);
    static_assert(isnan(T(std::numeric_limits<float>::quiet_NaN())));
    static_assert(!isnan(T(1.0f)) && isfinite(T(1.0f)) && !isinf(T(1.0f)));
    return true;
}

} // namespace coaccel::small_float_checks

#endif
