#include "rand/sequence.hpp"
#include "support/device_fixture.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace test_ops_rand {

// Test cases for any device. A CPU has the generators philox and mt19937 only.
namespace {

using namespace coaccel;
using rand::algorithm;
using rand::generator;
using test::device_fixture;

constexpr std::uint64_t seed = 0x1234567890abcdef;

bool is_cpu(const device_options& options)
{
    return options.kind == device_kind::host;
}

std::vector<algorithm> algorithms_of(const device_options& options)
{
    if (is_cpu(options))
        return {algorithm::philox, algorithm::mt19937};
    return {algorithm::philox,  algorithm::mt19937,           algorithm::xorwow,  algorithm::mrg32k3a,
            algorithm::sobol32, algorithm::scrambled_sobol32, algorithm::sobol64, algorithm::scrambled_sobol64};
}

generator make(algorithm a, std::uint64_t offset = 0)
{
    return rand::make_generator({.algorithm = a, .seed = rand::is_quasi_random(a) ? 0 : seed, .offset = offset});
}

template <class T>
buffer<T> fresh(device_fixture& f, std::size_t count)
{
    std::vector<T> junk(count);
    std::memset(junk.data(), 0xff, count * sizeof(T));
    return f.upload(junk);
}

/// Runs an op with this destination.
template <class Op, class T>
std::vector<T> draw(device_fixture& f, Op op, std::size_t count, T)
{
    const auto b = fresh<T>(f, count);
    op.dst = b;
    const auto done = f.exec(op);
    REQUIRE(done);
    return f.download(b);
}

std::uint32_t word(std::uint64_t position)
{
    return rand::philox_words(seed, position / 4)[position % 4];
}

struct moments {
    double mean = 0;
    double variance = 0;
};

template <class T>
moments moments_of(const std::vector<T>& v)
{
    moments m;
    for (const auto x : v)
        m.mean += static_cast<double>(x);
    m.mean /= static_cast<double>(v.size());
    for (const auto x : v)
        m.variance += (static_cast<double>(x) - m.mean) * (static_cast<double>(x) - m.mean);
    m.variance /= static_cast<double>(v.size());
    return m;
}

/// The Kolmogorov-Smirnov statistic, scaled so that it exceeds 1.95 with a probability of 0.1 %.
template <class T, class Distribution>
double distance_to(std::vector<T> v, Distribution below)
{
    std::sort(v.begin(), v.end());
    const auto n = static_cast<double>(v.size());
    double most = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
        const double expected = below(static_cast<double>(v[i]));
        most = std::max({most, std::abs(expected - static_cast<double>(i) / n),
                         std::abs(static_cast<double>(i + 1) / n - expected)});
    }
    return most * std::sqrt(n);
}

double normal_below(double x)
{
    return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

constexpr std::size_t many = 1 << 16;

} // namespace

TEST_SUITE_BEGIN("rand ops");

TEST_CASE("philox has the same bits on every device")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const std::uint64_t offset : {0ull, 1ull, 3ull, 4ull, 262142ull, 1000001ull})
            for (const std::size_t n : {1, 2, 3, 7, 1000, 262150}) {
                CAPTURE(offset);
                CAPTURE(n);
                const auto narrow =
                    draw(f, rand::bits<std::uint32_t>{.dst = {}, .from = make(algorithm::philox, offset)}, n, 0u);
                const auto wide = draw(f, rand::bits<std::uint64_t>{.dst = {}, .from = make(algorithm::philox, offset)},
                                       n, std::uint64_t());
                const auto uniform =
                    draw(f, rand::uniform<float>{.dst = {}, .from = make(algorithm::philox, offset)}, n, 0.0f);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    wrong += narrow[i] != word(offset + i);
                    wrong += wide[i] != (word(offset + 2 * i) | std::uint64_t(word(offset + 2 * i + 1)) << 32);
                    wrong += uniform[i] != static_cast<float>(word(offset + i)) * 0x1p-32f + 0x1p-33f;
                }
                CHECK(wrong == 0);
            }
    }
}

TEST_CASE("philox has the same doubles on every device")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const std::uint64_t offset : {0ull, 1ull, 6ull, 262142ull, 1000001ull})
            for (const std::size_t n : {1, 2, 5, 262150}) {
                CAPTURE(offset);
                CAPTURE(n);
                const auto found =
                    draw(f, rand::uniform<double>{.dst = {}, .from = make(algorithm::philox, offset)}, n, 0.0);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const std::uint64_t at = offset % 4 + i;
                    const auto w = rand::philox_wide_words(seed, offset, at / 2);
                    const std::uint64_t low = w[at % 2 * 2];
                    const std::uint64_t high = w[at % 2 * 2 + 1];
                    wrong += found[i] != static_cast<double>(low ^ high << 21) * 0x1p-53 + 0x1p-54;
                }
                CHECK(wrong == 0);
            }
    }
}

TEST_CASE("a generator continues where the op before has ended")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            const auto whole = draw(f, rand::uniform<float>{.dst = {}, .from = make(a)}, 1010, 0.0f);
            const auto g = make(a);
            std::vector<float> parts;
            for (const std::size_t n : {1, 2, 7, 1000}) {
                const auto more = draw(f, rand::uniform<float>{.dst = {}, .from = g}, n, 0.0f);
                parts.insert(parts.end(), more.begin(), more.end());
            }
            CHECK(parts == whole);
        }
    }
}

TEST_CASE("the reply has the position, with which philox repeats the numbers")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto g = make(algorithm::philox, 5);
        const auto floats = fresh<float>(f, 10);
        const auto doubles = fresh<double>(f, 10);
        const auto first = f.exec(rand::uniform<float>{floats, g}).value();
        CHECK(first.position == 5);
        CHECK(first.started);
        const auto second = f.exec(rand::uniform<double>{doubles, g}).value();
        CHECK(second.position == 15);
        CHECK_FALSE(second.started);
        const auto third = f.exec(rand::normal<double>{doubles, g}).value();
        const auto expected = f.download(doubles);
        CHECK(third.position == rand::after_wide_words(15, 10));
        CHECK(draw(f, rand::normal<double>{.dst = {}, .from = make(algorithm::philox, third.position)}, 10, 0.0) ==
              expected);
        const auto fourth = f.exec(rand::uniform<float>{floats, g}).value();
        CHECK(fourth.position == rand::after_wide_words(third.position, 10));
        CHECK(draw(f, rand::uniform<float>{.dst = {}, .from = make(algorithm::philox, fourth.position)}, 10, 0.0f) ==
              f.download(floats));
    }
}

TEST_CASE("two generators do not disturb each other")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            const auto g = make(a);
            const auto h = make(a);
            const auto expected = draw(f, rand::uniform<float>{.dst = {}, .from = make(a)}, 20, 0.0f);
            for (const auto& from : {g, h}) {
                const auto half = draw(f, rand::uniform<float>{.dst = {}, .from = from}, 10, 0.0f);
                CHECK(std::equal(half.begin(), half.end(), expected.begin()));
            }
            for (const auto& from : {g, h}) {
                const auto half = draw(f, rand::uniform<float>{.dst = {}, .from = from}, 10, 0.0f);
                CHECK(std::equal(half.begin(), half.end(), expected.begin() + 10));
            }
        }
    }
}

TEST_CASE("ops of one generator on several lanes run in the order of their start")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            constexpr std::size_t parts = 24;
            constexpr std::size_t n = 512;
            const auto whole = draw(f, rand::uniform<float>{.dst = {}, .from = make(a)}, parts * n, 0.0f);
            const auto g = make(a);
            const auto b = fresh<float>(f, parts * n);
            std::size_t ended = 0;
            for (std::size_t i = 0; i < parts; ++i)
                f.gpu.with({.lane = static_cast<int>(i % 3)})
                    .async_exec(rand::uniform<float>{b.subspan(i * n, n), g}, [&](error_code ec, rand::drawn) {
                        CHECK_FALSE(ec);
                        ++ended;
                    });
            test::run_until(f.io, [&] { return ended == parts; });
            CHECK(f.download(b) == whole);
        }
    }
}

/// Draws into the middle of a buffer.
template <class Op, class T>
void check_surroundings(device_fixture& f, Op op, T untouched)
{
    for (const std::size_t offset : {1, 2, 3})
        for (const std::size_t n : {1, 2, 5, 64}) {
            CAPTURE(op.name);
            CAPTURE(offset);
            CAPTURE(n);
            const auto b = f.upload(std::vector<T>(80, untouched));
            op.dst = b.subspan(offset, n);
            REQUIRE(f.exec(op));
            const auto after = f.download(b);
            for (std::size_t i = 0; i < offset; ++i)
                CHECK(after[i] == untouched);
            for (std::size_t i = offset + n; i < after.size(); ++i)
                CHECK(after[i] == untouched);
        }
}

TEST_CASE("only the destination changes, however it is aligned")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            const auto g = make(a);
            check_surroundings(f, rand::uniform<float>{{}, g}, -7.0f);
            check_surroundings(f, rand::uniform<double>{{}, g}, -7.0);
            check_surroundings(f, rand::normal<float>{{}, g}, -700.0f);
            check_surroundings(f, rand::normal<double>{{}, g}, -700.0);
            check_surroundings(f, rand::log_normal<float>{{}, g}, -7.0f);
            check_surroundings(f, rand::log_normal<double>{{}, g}, -7.0);
            check_surroundings(f, rand::poisson{{}, g, 3}, 4711u);
            if (a != algorithm::sobol64 && a != algorithm::scrambled_sobol64)
                check_surroundings(f, rand::bits<std::uint32_t>{{}, g}, 4711u);
            if (a != algorithm::sobol32 && a != algorithm::scrambled_sobol32)
                check_surroundings(f, rand::bits<std::uint64_t>{{}, g}, std::uint64_t(4711));
        }
    }
}

TEST_CASE("uniform numbers are uniform")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            const auto check = [](const auto& v) {
                CHECK(*std::min_element(v.begin(), v.end()) > 0);
                CHECK(*std::max_element(v.begin(), v.end()) <= 1);
                CHECK(distance_to(v, [](double x) { return x; }) < 1.95);
                // Chi-square with 255 degrees of freedom: 330 is exceeded with a probability of 0.1 %.
                std::array<double, 256> counts{};
                for (const auto x : v)
                    ++counts[std::min<std::size_t>(255, static_cast<std::size_t>(static_cast<double>(x) * 256))];
                double chi = 0;
                for (const double c : counts)
                    chi += (c - many / 256.0) * (c - many / 256.0) / (many / 256.0);
                CHECK(chi < 330);
            };
            check(draw(f, rand::uniform<float>{.dst = {}, .from = make(a)}, many, 0.0f));
            check(draw(f, rand::uniform<double>{.dst = {}, .from = make(a)}, many, 0.0));
        }
    }
}

TEST_CASE("all bits are equally likely")
{
    const auto check = [](const auto& v, algorithm a) {
        constexpr unsigned width = 8 * sizeof(v[0]);
        // The first 2^16 Sobol numbers are the multiples of 1/2^16.
        const bool sobol = a == algorithm::sobol32 || a == algorithm::sobol64;
        for (unsigned bit = sobol ? width - 16 : 0; bit < width; ++bit) {
            std::size_t set = 0;
            for (const auto x : v)
                set += x >> bit & 1;
            // Four standard deviations.
            CHECK(std::abs(static_cast<double>(set) - many / 2.0) < 4 * std::sqrt(many / 4.0));
        }
    };
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            const bool wide_only = a == algorithm::sobol64 || a == algorithm::scrambled_sobol64;
            if (!wide_only)
                check(draw(f, rand::bits<std::uint32_t>{.dst = {}, .from = make(a)}, many, 0u), a);
            if (wide_only || !rand::is_quasi_random(a))
                check(draw(f, rand::bits<std::uint64_t>{.dst = {}, .from = make(a)}, many, std::uint64_t()), a);
        }
    }
}

TEST_CASE("normal numbers are normal, for odd lengths too")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options))
            for (const std::size_t n : {many, many - 1}) {
                CAPTURE(static_cast<int>(a));
                CAPTURE(n);
                const auto check = [](const auto& v) {
                    CHECK(distance_to(v, [](double x) { return normal_below((x - 3) / 2); }) < 1.95);
                    const auto m = moments_of(v);
                    CHECK(m.mean == doctest::Approx(3).epsilon(0.02));
                    CHECK(m.variance == doctest::Approx(4).epsilon(0.04));
                };
                check(draw(f, rand::normal<float>{.dst = {}, .from = make(a), .mean = 3, .stddev = 2}, n, 0.0f));
                check(draw(f, rand::normal<double>{.dst = {}, .from = make(a), .mean = 3, .stddev = 2}, n, 0.0));
            }
        for (const auto a : algorithms_of(options))
            for (const std::size_t n : {1, 2, 3, 5}) {
                CAPTURE(static_cast<int>(a));
                CAPTURE(n);
                for (const float x : draw(f, rand::normal<float>{.dst = {}, .from = make(a)}, n, 0.0f))
                    CHECK(std::abs(x) < 10);
                for (const double x : draw(f, rand::log_normal<double>{.dst = {}, .from = make(a)}, n, 0.0))
                    CHECK(x > 0);
            }
    }
}

TEST_CASE("philox has almost the same normal numbers on every device")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const std::uint64_t offset : {0ull, 1ull, 7ull}) {
            const auto found =
                draw(f, rand::normal<float>{.dst = {}, .from = make(algorithm::philox, offset)}, 101, 0.0f);
            for (std::size_t i = 0; i < found.size(); ++i) {
                const std::uint64_t at = offset + i;
                const double radius = std::sqrt(-2 * std::log(word(at / 2 * 2) * 0x1p-32 + 0x1p-33));
                const double angle = 2 * 3.14159265358979323846 * (word(at / 2 * 2 + 1) * 0x1p-32 + 0x1p-33);
                CHECK(found[i] ==
                      doctest::Approx(radius * (at % 2 == 0 ? std::sin(angle) : std::cos(angle))).epsilon(1e-4));
            }
        }
    }
}

TEST_CASE("the logarithms of log-normal numbers are normal")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            CAPTURE(static_cast<int>(a));
            auto v =
                draw(f, rand::log_normal<double>{.dst = {}, .from = make(a), .mean = -1, .stddev = 0.5}, many, 0.0);
            std::transform(v.begin(), v.end(), v.begin(), [](double x) { return std::log(x); });
            CHECK(distance_to(v, [](double x) { return normal_below((x + 1) / 0.5); }) < 1.95);
            auto w =
                draw(f, rand::log_normal<float>{.dst = {}, .from = make(a), .mean = 1, .stddev = 0.25f}, many, 0.0f);
            std::transform(w.begin(), w.end(), w.begin(), [](float x) { return std::log(x); });
            CHECK(distance_to(w, [](double x) { return normal_below((x - 1) / 0.25); }) < 1.95);
        }
    }
}

TEST_CASE("Poisson numbers have the right mean, variance and frequencies")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options))
            for (const double lambda : {0.5, 4.0, 60.0, 5000.0}) {
                CAPTURE(static_cast<int>(a));
                CAPTURE(lambda);
                const auto v = draw(f, rand::poisson{.dst = {}, .from = make(a), .lambda = lambda}, many, 0u);
                const auto m = moments_of(v);
                const double n = many;
                CHECK(std::abs(m.mean - lambda) < 5 * std::sqrt(lambda / n));
                CHECK(std::abs(m.variance - lambda) < 5 * std::sqrt((lambda + 2 * lambda * lambda) / n));
                if (lambda > 5)
                    continue;
                double probability = std::exp(-lambda);
                for (std::uint32_t k = 0; k < 6; ++k) {
                    const double expected = n * probability;
                    const auto found = static_cast<double>(std::count(v.begin(), v.end(), k));
                    CHECK(std::abs(found - expected) < 5 * std::sqrt(expected));
                    probability *= lambda / (k + 1);
                }
            }
    }
}

TEST_CASE("other seeds give other numbers")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const auto a : algorithms_of(options)) {
            if (rand::is_quasi_random(a))
                continue;
            CAPTURE(static_cast<int>(a));
            const auto first = draw(f, rand::uniform<float>{.dst = {}, .from = make(a)}, 100, 0.0f);
            CHECK(draw(f, rand::uniform<float>{.dst = {}, .from = make(a)}, 100, 0.0f) == first);
            // The seeds differ only in their upper half.
            const auto other = rand::make_generator({.algorithm = a, .seed = seed ^ std::uint64_t(1) << 40});
            CHECK(draw(f, rand::uniform<float>{.dst = {}, .from = other}, 100, 0.0f) != first);
        }
    }
}

TEST_CASE("a CPU refuses the generators of GPUs")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        if (!is_cpu(options))
            continue;
        const auto b = fresh<float>(f, 4);
        for (const auto a : {algorithm::xorwow, algorithm::mrg32k3a, algorithm::sobol32, algorithm::sobol64}) {
            const auto ec = f.error_of(rand::uniform<float>{b, make(a)});
            CHECK(ec == errc::unsupported_op);
            CHECK(ec.message().find("rand.uniform") != std::string::npos);
        }
        CHECK_FALSE(f.error_of(rand::uniform<float>{b, make(algorithm::philox)}));
    }
}

TEST_CASE("a device keeps the state of 256 generators, and starts older ones again")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto b = fresh<float>(f, 4);
        const auto old = make(algorithm::philox);
        REQUIRE(f.exec(rand::uniform<float>{b, old}));
        for (std::size_t i = 0; i + 1 < rand::most_generators; ++i)
            REQUIRE(f.exec(rand::uniform<float>{b, make(algorithm::philox)}).value().started);
        CHECK_FALSE(f.exec(rand::uniform<float>{b, old}).value().started);
        for (std::size_t i = 0; i < rand::most_generators; ++i)
            REQUIRE(f.exec(rand::uniform<float>{b, make(algorithm::philox)}).value().started);
        const auto again = f.exec(rand::uniform<float>{b, old}).value();
        CHECK(again.started);
        CHECK(again.position == 0);
    }
}

TEST_SUITE_END();

} // namespace test_ops_rand
