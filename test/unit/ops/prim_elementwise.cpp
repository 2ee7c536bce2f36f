#include "support/device_fixture.hpp"
#include "support/prim.hpp"

#include <coaccel/ops/prim.hpp>

#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace test_ops_prim_elementwise {

// Test cases for any device.
namespace {

using namespace coaccel;
using prim::comparison;
using prim::integer_binary;
using prim::integer_function;
using prim::real_binary;
using prim::real_function;
using prim::ternary_function;
using test::as_double;
using test::device_fixture;
using test::for_each_type;

constexpr std::size_t sizes[] = {1, 7, 1000};

template <class Enum, class F>
void for_each_enumerator(F f)
{
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<Enum>>([&](auto e) { f(e.value, e.name); });
}

/// By other formulas than those of the library.
double reference(real_function f, double x)
{
    switch (f) {
    case real_function::neg: return 0 - x;
    case real_function::abs: return x < 0 ? -x : x;
    case real_function::sqrt: return std::pow(x, 0.5);
    case real_function::rsqrt: return std::pow(x, -0.5);
    case real_function::exp: return std::exp2(x * std::log2(std::exp(1.0)));
    case real_function::log: return std::log2(x) * std::log(2.0);
    case real_function::log1p: return 2 * std::atanh(x / (2 + x));
    case real_function::expm1: return 2 * std::exp(x / 2) * std::sinh(x / 2);
    case real_function::sin: return std::cos(x - std::acos(0.0));
    case real_function::cos: return 1 - 2 * std::sin(x / 2) * std::sin(x / 2);
    case real_function::tan: return std::sin(x) / std::cos(x);
    case real_function::tanh: return std::sinh(x) / std::cosh(x);
    case real_function::sigmoid: return 0.5 * (1 + std::tanh(x / 2));
    case real_function::erf: return 1 - std::erfc(x);
    case real_function::relu: return (x + std::abs(x)) / 2;
    case real_function::gelu: return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case real_function::silu: return x * 0.5 * (1 + std::tanh(x / 2));
    case real_function::floor: return x - std::fmod(x, 1) - (std::fmod(x, 1) < 0 ? 1 : 0);
    case real_function::ceil: return x - std::fmod(x, 1) + (std::fmod(x, 1) > 0 ? 1 : 0);
    case real_function::round: return std::trunc(x + std::copysign(0.5, x));
    case real_function::sign: return (x > 0) - (x < 0);
    case real_function::square: return std::pow(x, 2);
    case real_function::reciprocal: return std::pow(x, -1);
    }
    return 0;
}

bool is_for_positive(real_function f)
{
    return f == real_function::sqrt || f == real_function::rsqrt || f == real_function::log ||
           f == real_function::log1p || f == real_function::reciprocal;
}

double reference(real_binary f, double a, double b)
{
    switch (f) {
    case real_binary::add: return a - -b;
    case real_binary::sub: return a + -b;
    case real_binary::mul: return a == 0 || b == 0 ? 0 : a / (1 / b);
    case real_binary::div: return a * (1 / b);
    case real_binary::min: return (a + b - std::abs(a - b)) / 2;
    case real_binary::max: return (a + b + std::abs(a - b)) / 2;
    case real_binary::pow: return std::exp2(b * std::log2(a));
    case real_binary::mod: return a - b * std::trunc(a / b);
    case real_binary::atan2: return std::atan(a / b);
    case real_binary::hypot: return std::sqrt(a * a + b * b);
    }
    return 0;
}

__extension__ typedef __int128 wide_int;

/// In 128 bits, without wrapping.
template <class T>
T wrap(wide_int x)
{
    const wide_int range = wide_int(1) << (8 * sizeof(T));
    x = ((x % range) + range) % range;
    return x > wide_int(std::numeric_limits<T>::max()) ? static_cast<T>(x - range) : static_cast<T>(x);
}

template <class T>
T reference(integer_function f, T v)
{
    const wide_int x = v;
    switch (f) {
    case integer_function::neg: return wrap<T>(-x);
    case integer_function::abs: return wrap<T>(x < 0 ? -x : x);
    case integer_function::relu: return wrap<T>(x < 0 ? 0 : x);
    case integer_function::sign: return wrap<T>((x > 0) - (x < 0));
    case integer_function::square: return static_cast<T>(static_cast<std::uint64_t>(v) * static_cast<std::uint64_t>(v));
    case integer_function::bit_not: return wrap<T>(-x - 1);
    case integer_function::logical_not: return wrap<T>(x == 0);
    }
    return 0;
}

template <class T>
T reference(integer_binary f, T v, T w)
{
    const wide_int a = v;
    const wide_int b = w;
    switch (f) {
    case integer_binary::add: return wrap<T>(a + b);
    case integer_binary::sub: return wrap<T>(a - b);
    case integer_binary::mul: return static_cast<T>(static_cast<std::uint64_t>(v) * static_cast<std::uint64_t>(w));
    case integer_binary::div: return b == 0 ? T(0) : wrap<T>(a / b);
    case integer_binary::min: return wrap<T>(std::min(a, b));
    case integer_binary::max: return wrap<T>(std::max(a, b));
    case integer_binary::pow: {
        if (b < 0)
            return a == 1 ? T(1) : a == -1 ? wrap<T>(b % 2 == 0 ? 1 : -1) : T(0);
        std::uint64_t product = 1;
        for (wide_int i = 0; i < b; ++i)
            product *= static_cast<std::uint64_t>(v);
        return static_cast<T>(product);
    }
    case integer_binary::mod: return b == 0 ? T(0) : wrap<T>(a - b * (a / b));
    case integer_binary::bit_and: return static_cast<T>(~(~v | ~w));
    case integer_binary::bit_or: return static_cast<T>(~(~v & ~w));
    case integer_binary::bit_xor: return static_cast<T>((v | w) & ~(v & w));
    case integer_binary::logical_and: return T(!(!v || !w));
    case integer_binary::logical_or: return T(!(!v && !w));
    case integer_binary::logical_xor: return T(!v != !w);
    }
    return 0;
}

/// Elements of integer types, with the special ones first.
template <class T>
std::vector<T> integers(std::mt19937& random, std::size_t count)
{
    auto made = test::random_bits<T>(random, count);
    using limits = std::numeric_limits<T>;
    const T special[] = {T(0), T(1), static_cast<T>(-1), limits::min(), limits::max(), T(2)};
    for (std::size_t i = 0; i < count; i += 2)
        made[i] = special[random() % std::size(special)];
    return made;
}

/// Runs an op whose last operand is `result`, and returns it.
template <class Op, class T>
std::vector<T> run(device_fixture& f, const Op& op, const buffer<T>& result)
{
    const auto ec = test::run_listed(f, op);
    REQUIRE_MESSAGE(!ec, ec.message());
    return f.download(result);
}

} // namespace

TEST_SUITE_BEGIN("prim elementwise");

TEST_CASE("functions of real numbers")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(1);
        for_each_type(prim::floating_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            for (const std::size_t n : sizes)
                for_each_enumerator<real_function>([&](real_function what, const char* name) {
                    CAPTURE(name);
                    const auto x = test::random_elements<T>(random, n, is_for_positive(what) ? 0.1 : -4, 4);
                    const auto in = f.upload(x);
                    const auto out = f.upload(test::poisoned<T>(n));
                    const auto y = run(f, prim::unary<T>{.x = in, .y = out, .what = what}, out);
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < n; ++i) {
                        const double v = as_double(x[i]);
                        const double expected = reference(what, v);
                        // tan has large values, whose errors are relative; gelu and others subtract numbers of the
                        // size of their argument.
                        const double bound = test::epsilon<T>() * (16 * std::abs(expected) + 2 * std::abs(v) + 1);
                        wrong += !test::close(as_double(y[i]), expected, bound);
                    }
                    CHECK(wrong == 0);
                });
        });
    }
}

TEST_CASE("functions of integers")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(2);
        for_each_type(prim::integer_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            for (const std::size_t n : sizes)
                for_each_enumerator<integer_function>([&](integer_function what, const char* name) {
                    CAPTURE(name);
                    const auto x = integers<T>(random, n);
                    const auto in = f.upload(x);
                    const auto out = f.upload(test::poisoned<T>(n));
                    const auto y = run(f, prim::unary<T>{.x = in, .y = out, .what = what}, out);
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < n; ++i)
                        wrong += y[i] != reference(what, x[i]);
                    CHECK(wrong == 0);
                });
        });
    }
}

TEST_CASE("functions of two real numbers")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(3);
        for_each_type(prim::floating_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            for (const std::size_t n : sizes)
                for_each_enumerator<real_binary>([&](real_binary what, const char* name) {
                    CAPTURE(name);
                    const auto a = test::random_elements<T>(random, n, 0.1, 8);
                    const auto b = test::random_elements<T>(random, n, 0.5, 3);
                    const auto x = f.upload(a);
                    const auto y = f.upload(b);
                    const auto out = f.upload(test::poisoned<T>(n));
                    const auto c = run(f, prim::binary<T>{.a = x, .b = y, .c = out, .what = what}, out);
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < n; ++i) {
                        const double v = as_double(a[i]);
                        const double w = as_double(b[i]);
                        const double expected = reference(what, v, w);
                        // The remainder of a number just above or below a multiple.
                        if (what == real_binary::mod && (expected < 1e-6 || expected > w - 1e-6))
                            continue;
                        wrong += !test::close(as_double(c[i]), expected,
                                              test::epsilon<T>() * (16 * std::abs(expected) + v + w));
                    }
                    CHECK(wrong == 0);
                });
        });
    }
}

TEST_CASE("functions of two integers, also where a quotient or a power would overflow")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(4);
        for_each_type(prim::integer_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            for (const std::size_t n : sizes)
                for_each_enumerator<integer_binary>([&](integer_binary what, const char* name) {
                    CAPTURE(name);
                    const auto a = integers<T>(random, n);
                    auto b = integers<T>(random, n);
                    // The reference multiplies one by one.
                    if (what == integer_binary::pow)
                        for (auto& x : b)
                            x = static_cast<T>(static_cast<int>(random() % 80) - (std::is_signed_v<T> ? 10 : 0));
                    const auto x = f.upload(a);
                    const auto y = f.upload(b);
                    const auto out = f.upload(test::poisoned<T>(n));
                    const auto c = run(f, prim::binary<T>{.a = x, .b = y, .c = out, .what = what}, out);
                    std::size_t wrong = 0;
                    for (std::size_t i = 0; i < n; ++i)
                        wrong += c[i] != reference(what, a[i], b[i]);
                    CHECK(wrong == 0);
                });
        });
    }
}

TEST_CASE("comparisons, and the selection by their results")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(5);
        const auto check_type = [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            constexpr std::size_t n = 333;
            // Few different numbers, so that some are equal.
            const auto a = test::random_elements<T>(random, n, 0, 4);
            auto b = test::random_elements<T>(random, n, 0, 4);
            for (std::size_t i = 0; i < n; i += 3)
                b[i] = a[i];
            const auto x = f.upload(a);
            const auto y = f.upload(b);
            for_each_enumerator<comparison>([&](comparison what, const char* name) {
                CAPTURE(name);
                const auto out = f.upload(test::poisoned<std::uint8_t>(n));
                const auto mask = run(f, prim::compare<T>{.a = x, .b = y, .c = out, .what = what}, out);
                const auto chosen = f.upload(test::poisoned<T>(n));
                const auto c = run(f, prim::where<T>{.mask = out, .a = x, .b = y, .c = chosen}, chosen);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const double d = as_double(a[i]) - as_double(b[i]);
                    const bool expected[] = {d == 0, d != 0, d < 0, d <= 0, d > 0, d >= 0};
                    wrong += mask[i] != (expected[static_cast<int>(what)] ? 1 : 0);
                    wrong += !test::same_bytes(c[i], mask[i] ? a[i] : b[i]);
                }
                CHECK(wrong == 0);
            });
        };
        for_each_type(prim::floating_types{}, check_type);
        for_each_type(prim::integer_types{}, check_type);
    }
}

TEST_CASE("functions of three numbers, and clamp")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        std::mt19937 random(6);
        const auto check_type = [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            constexpr std::size_t n = 201;
            const double least = std::is_unsigned_v<T> ? 0 : -5;
            const auto a = test::random_elements<T>(random, n, least, 9);
            const auto b = test::random_elements<T>(random, n, least, 4);
            const auto c = test::random_elements<T>(random, n, 4, 6);
            const auto x = f.upload(a);
            const auto y = f.upload(b);
            const auto z = f.upload(c);
            const auto out = f.upload(test::poisoned<T>(n));
            const auto sums =
                run(f, prim::ternary<T>{.a = x, .b = y, .c = z, .d = out, .what = ternary_function::multiply_add}, out);
            const auto limited =
                run(f, prim::ternary<T>{.a = x, .b = y, .c = z, .d = out, .what = ternary_function::clamp}, out);
            const auto clamped = run(f, prim::clamp<T>{.x = x, .y = out, .low = T(1), .high = T(3)}, out);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < n; ++i) {
                const double u = as_double(a[i]);
                const double v = as_double(b[i]);
                const double w = as_double(c[i]);
                double bound = 0;
                if constexpr (prim::floating<T>)
                    bound = test::epsilon<T>() * std::abs(u * v + w) + 1e-14;
                wrong += !test::close(as_double(sums[i]), u * v + w, bound);
                wrong += as_double(limited[i]) != std::min(std::max(u, v), w);
                wrong += as_double(clamped[i]) != std::min(std::max(u, 1.0), 3.0);
            }
            CHECK(wrong == 0);
        };
        for_each_type(prim::floating_types{}, check_type);
        for_each_type(prim::integer_types{}, check_type);
    }
}

TEST_CASE("sequences")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto check_type = [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            for (const std::size_t n : {1, 3, 300, 100003}) {
                const auto out = f.upload(test::poisoned<T>(n));
                const auto got = run(f, prim::sequence<T>{.dst = out, .start = T(3), .step = T(2)}, out);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    if constexpr (prim::integer<T>)
                        wrong += got[i] != wrap<T>(3 + wide_int(2) * wide_int(i));
                    else
                        wrong += !test::same_bytes(got[i], T(3.0 + 2.0 * static_cast<double>(i)));
                }
                CHECK(wrong == 0);
            }
        };
        for_each_type(prim::floating_types{}, check_type);
        for_each_type(prim::integer_types{}, check_type);
    }
}

TEST_CASE("NaN and infinity")
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double inf = std::numeric_limits<double>::infinity();
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for_each_type(prim::floating_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            struct row {
                real_function what;
                double x, expected;
            };
            const row rows[] = {
                {real_function::relu, nan, nan},   {real_function::relu, -inf, 0},      {real_function::relu, inf, inf},
                {real_function::sign, nan, nan},   {real_function::sign, -inf, -1},     {real_function::sqrt, -1, nan},
                {real_function::log, 0, -inf},     {real_function::exp, -inf, 0},       {real_function::exp, inf, inf},
                {real_function::sigmoid, -inf, 0}, {real_function::sigmoid, inf, 1},    {real_function::tanh, -inf, -1},
                {real_function::erf, inf, 1},      {real_function::reciprocal, 0, inf},
            };
            for (const auto& r : rows) {
                const auto in = f.upload(std::vector<T>{T(r.x)});
                const auto out = f.upload(test::poisoned<T>(1));
                const auto y = run(f, prim::unary<T>{.x = in, .y = out, .what = r.what}, out);
                CHECK(test::close(as_double(y[0]), r.expected, 0));
            }
            const std::vector<T> a{T(nan), T(1.0), T(inf), T(-inf)};
            const std::vector<T> b{T(1.0), T(nan), T(2.0), T(2.0)};
            const auto x = f.upload(a);
            const auto y = f.upload(b);
            const auto out = f.upload(test::poisoned<T>(4));
            const auto least = run(f, prim::binary<T>{.a = x, .b = y, .c = out, .what = prim::real_binary::min}, out);
            CHECK(test::is_nan(least[0]));
            CHECK(test::is_nan(least[1]));
            CHECK(as_double(least[2]) == 2);
            CHECK(as_double(least[3]) == -inf);
            const auto most = run(f, prim::binary<T>{.a = x, .b = y, .c = out, .what = prim::real_binary::max}, out);
            CHECK(test::is_nan(most[0]));
            CHECK(test::is_nan(most[1]));
            CHECK(as_double(most[2]) == inf);
            CHECK(as_double(most[3]) == 2);
            const auto limited = run(f, prim::clamp<T>{.x = x, .y = out, .low = T(-3.0), .high = T(3.0)}, out);
            CHECK(test::is_nan(limited[0]));
            CHECK(as_double(limited[2]) == 3);
            CHECK(as_double(limited[3]) == -3);
            const auto equal = f.upload(test::poisoned<std::uint8_t>(4));
            CHECK(run(f, prim::compare<T>{.a = x, .b = x, .c = equal, .what = comparison::equal}, equal) ==
                  std::vector<std::uint8_t>{0, 1, 1, 1});
            CHECK(run(f, prim::compare<T>{.a = x, .b = y, .c = equal, .what = comparison::not_equal}, equal) ==
                  std::vector<std::uint8_t>{1, 1, 1, 1});
        });
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_elementwise
