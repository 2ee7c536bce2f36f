#include "support/device_fixture.hpp"
#include "support/prim.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace test_ops_prim_casts {

// Conversions between all element types, on any device.
namespace {

using namespace coaccel;
using test::device_fixture;

template <class T>
constexpr bool is_complex_type = prim::detail::is_complex_element<T>;

/// A real number with more digits than any element type.
template <class T>
long double exactly(const T& x)
{
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<long double>(x);
    else
        return static_cast<long double>(static_cast<float>(x));
}

/// Whether `got` is the number of the type nearest to x: no neighbour is nearer, and of two equally near ones it is the
/// even one. Numbers beyond the range are infinite or, if the type saturates, the greatest.
template <class T>
bool is_nearest(const T& got, long double x, bool saturates)
{
    using limits = std::numeric_limits<T>;
    if (std::isnan(x))
        return test::is_nan(got);
    const long double most = exactly(limits::max());
    // Half a step above the greatest number.
    const long double step =
        most - exactly(T(static_cast<double>(most) * (1 - test::as_double(limits::epsilon()) * 0.6)));
    const long double g = exactly(got);
    if (std::abs(x) >= most + step / 2)
        return saturates ? g == std::copysign(most, x) : std::isinf(g) && std::signbit(g) == std::signbit(x);
    if (std::isinf(g) || std::isnan(g))
        return false;
    if (std::signbit(g) != std::signbit(x) && g != 0)
        return false;
    // A step of the type near x.
    int exponent = 0;
    std::frexp(std::max(std::abs(x), std::abs(g)), &exponent);
    const long double unit =
        std::ldexp(1.0L, std::max(exponent - limits::digits, limits::min_exponent - limits::digits));
    const long double error = std::abs(g - x);
    if (error > unit / 2)
        return false;
    return error < unit / 2 || std::fmod(g / unit, 2.0L) == 0;
}

template <class To, class From>
bool is_right(const To& got, const From& x)
{
    if constexpr (is_complex_type<From>)
        return is_right(got.real(), x.real()) && is_right(got.imag(), x.imag());
    else if constexpr (is_complex_type<To>)
        return is_right(got.real(), x) && got.imag() == 0;
    else if constexpr (prim::integer<To> && prim::integer<From>)
        return static_cast<std::uint64_t>(got) % (sizeof(To) < 8 ? 1ull << (8 * sizeof(To) % 64) : ~0ull) ==
                   static_cast<std::uint64_t>(x) % (sizeof(To) < 8 ? 1ull << (8 * sizeof(To) % 64) : ~0ull) ||
               static_cast<std::uint64_t>(got) == static_cast<std::uint64_t>(x);
    else if constexpr (prim::integer<To>) {
        const long double v = exactly(x);
        if (std::isnan(v))
            return got == 0;
        const auto least = static_cast<long double>(std::numeric_limits<To>::min());
        const auto most = static_cast<long double>(std::numeric_limits<To>::max());
        return static_cast<long double>(got) == std::trunc(std::min(std::max(v, least), most));
    } else
        return is_nearest(got, exactly(x), sizeof(To) == 1);
}

/// Any bits, and numbers of a range that most types have.
template <class T>
std::vector<T> samples(std::mt19937& random, std::size_t count)
{
    auto made = test::random_bits<T>(random, count);
    for (std::size_t i = 0; i < count; i += 2) {
        const double x = static_cast<double>(random() % 60000) / 64 - 300;
        if constexpr (is_complex_type<T>)
            made[i] = T(static_cast<typename T::value_type>(x), static_cast<typename T::value_type>(-x));
        else
            made[i] = static_cast<T>(prim::integer<T> ? (std::is_unsigned_v<T> ? std::abs(x) : x) / 8 : x);
    }
    return made;
}

// Not templates: compiled once, and not for each pair of types.

void check_ran(dtype from, dtype to, error_code ec)
{
    CAPTURE(to_string(from));
    CAPTURE(to_string(to));
    REQUIRE_MESSAGE(!ec, ec.message());
}

/// `right`: the number of elements before the first wrong one.
void check_all_right(dtype from, dtype to, std::size_t right, std::size_t n)
{
    CAPTURE(to_string(from));
    CAPTURE(to_string(to));
    CHECK(right == n);
}

} // namespace

TEST_SUITE_BEGIN("prim casts");

TEST_CASE("every conversion gives the nearest number, or the defined one where there is none")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(10);
        test::for_each_type(element_types{}, [&]<class From>() {
            constexpr std::size_t n = 500;
            const auto x = samples<From>(random, n);
            const auto in = f.upload(x);
            [&]<class... Tos>(type_list<Tos...>) {
                const auto check_one = [&]<class To>() {
                    if constexpr (prim::castable<From, To>) {
                        const auto out = f.upload(test::poisoned<To>(n));
                        check_ran(dtype_v<From>, dtype_v<To>,
                                  test::run_listed(f, prim::cast<From, To>{.x = in, .y = out}));
                        const auto y = f.download(out);
                        std::size_t right = 0;
                        while (right < n && is_right(y[right], x[right]))
                            ++right;
                        check_all_right(dtype_v<From>, dtype_v<To>, right, n);
                    }
                };
                (check_one.template operator()<Tos>(), ...);
            }(element_types{});
        });
    }
}

TEST_CASE("conversions of special numbers")
{
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float inf = std::numeric_limits<float>::infinity();
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto x = f.upload(std::vector<float>{nan, inf, -inf, -0.9f, 300.7f, -300.7f, 3e9f, 65519.9f, 65520.0f});
        constexpr std::size_t n = 9;
        const auto bytes = f.upload(test::poisoned<std::uint8_t>(n));
        REQUIRE_FALSE(f.error_of(prim::cast<float, std::uint8_t>{.x = x, .y = bytes}));
        CHECK(f.download(bytes) == std::vector<std::uint8_t>{0, 255, 0, 0, 255, 0, 255, 255, 255});
        const auto words = f.upload(test::poisoned<std::int32_t>(n));
        REQUIRE_FALSE(f.error_of(prim::cast<float, std::int32_t>{.x = x, .y = words}));
        CHECK(f.download(words) ==
              std::vector<std::int32_t>{0, 2147483647, -2147483647 - 1, 0, 300, -300, 2147483647, 65519, 65520});
        const auto small = f.upload(test::poisoned<half>(n));
        REQUIRE_FALSE(f.error_of(prim::cast<float, half>{.x = x, .y = small}));
        const auto halves = f.download(small);
        CHECK(test::is_nan(halves[0]));
        CHECK(float(halves[1]) == inf);
        CHECK(float(halves[7]) == 65504.0f);
        CHECK(float(halves[8]) == inf);
        const auto tiny = f.upload(test::poisoned<float8_e4m3>(n));
        REQUIRE_FALSE(f.error_of(prim::cast<float, float8_e4m3>{.x = x, .y = tiny}));
        const auto eighths = f.download(tiny);
        CHECK(test::is_nan(eighths[0]));
        CHECK(float(eighths[1]) == 448.0f);
        CHECK(float(eighths[2]) == -448.0f);
        // Between two numbers of 11 bits and one of 53 bits: one rounding, not two.
        const auto big = f.upload(std::vector<std::int64_t>{(1ll << 62) + (1ll << 51) + 1});
        const auto once = f.upload(test::poisoned<bfloat16>(1));
        REQUIRE_FALSE(f.error_of(prim::cast<std::int64_t, bfloat16>{.x = big, .y = once}));
        CHECK(float(f.download(once)[0]) == 0x1p62f);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_casts
