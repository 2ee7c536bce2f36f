#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

namespace test_ops_prim_histogram {

// Histograms, on any device.
namespace {

using namespace coaccel;
using test::as_double;
using test::device_fixture;
using test::elements;
using test::poisoned;
using test::run_listed;

using number_types = boost::mp11::mp_append<prim::floating_types, prim::integer_types>;

/// Bins whose borders are quarters, times four.
struct range {
    std::int64_t low, high;
    std::uint64_t bins;
};

/// Quarters, or whole numbers, and for real types special values.
template <class T>
std::vector<T> quarters(std::mt19937& random, std::uint64_t n)
{
    std::vector<T> made(n);
    for (auto& x : made) {
        const int number = static_cast<int>(random() % 200) - (std::is_unsigned_v<T> ? 0 : 60);
        if constexpr (prim::integer<T>) {
            x = static_cast<T>(number / 2);
        } else {
            x = T(static_cast<float>(number) / 4);
            const T special[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                                 -std::numeric_limits<T>::infinity(), T(-0.0f)};
            if (random() % 16 == 0)
                x = special[random() % std::size(special)];
        }
    }
    return made;
}

/// In integers: an element is in bin b if bins * (x - low) is between b and b + 1 times the length of the range.
template <class T>
std::vector<std::uint64_t> expected_counts(const std::vector<T>& x, const range& r)
{
    std::vector<std::uint64_t> made(r.bins);
    for (const T& element : x) {
        const double number = 4 * as_double(element);
        if (!(std::abs(number) < 1e9))
            continue;
        const auto whole = static_cast<std::int64_t>(number);
        for (std::uint64_t b = 0; b < r.bins; ++b) {
            const auto scaled = (whole - r.low) * static_cast<std::int64_t>(r.bins);
            const auto begin = static_cast<std::int64_t>(b) * (r.high - r.low);
            made[b] += scaled >= begin && scaled < begin + (r.high - r.low);
        }
    }
    return made;
}

} // namespace

TEST_SUITE_BEGIN("prim histograms");

TEST_CASE("a histogram counts the elements of each bin, without NaN and those outside")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(number_types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            std::mt19937 random(95);
            for (const std::uint64_t n : {1, 300, 20001}) {
                const auto x = quarters<T>(random, n);
                const auto from = f.upload(x);
                for (const auto& r : {range{0, 200, 1}, range{0, 196, 49}, range{-12, 44, 7}, range{-60, 1, 5},
                                      range{3, 4, 3}, range{1000, 1004, 2}}) {
                    const auto to = f.upload(poisoned<std::uint64_t>(r.bins + 1));
                    const auto ec = run_listed(f, prim::histogram<T>{.x = from,
                                                                     .counts = to,
                                                                     .n = n,
                                                                     .bins = r.bins,
                                                                     .low = double(r.low) / 4,
                                                                     .high = double(r.high) / 4});
                    REQUIRE_MESSAGE(!ec, ec.message());
                    auto expected = expected_counts(x, r);
                    expected.push_back(poisoned<std::uint64_t>(1)[0]);
                    CHECK_MESSAGE(f.download(to) == expected, n << " elements in " << r.bins << " bins");
                }
            }
        });
    }
}

TEST_CASE("as many bins as a block of a GPU has in its own memory, and more")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        for (const std::uint64_t bins : {8191, 8192, 8193, 20000}) {
            CAPTURE(bins);
            std::vector<std::int32_t> x;
            std::vector<std::uint64_t> expected(bins);
            const auto end = static_cast<std::int32_t>(bins);
            for (std::int32_t i = -7; i < end + 7; ++i)
                for (int times = 0; times <= (i + 7) % 4; ++times) {
                    x.push_back(i);
                    if (i >= 0 && i < end)
                        ++expected[static_cast<std::uint64_t>(i)];
                }
            // Neighbours in different bins and in the same ones.
            std::mt19937 random(96);
            std::shuffle(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), random);
            const auto from = f.upload(x);
            const auto to = f.upload(poisoned<std::uint64_t>(bins + 1));
            REQUIRE_FALSE(run_listed(
                f, prim::histogram<std::int32_t>{
                       .x = from, .counts = to, .n = x.size(), .bins = bins, .high = static_cast<double>(bins)}));
            expected.push_back(poisoned<std::uint64_t>(1)[0]);
            CHECK(f.download(to) == expected);
        }
    }
}

TEST_CASE("the greatest numbers of a type are within a range that ends behind them")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto count = [&]<class T>(const std::vector<T>& x, double low, double high) {
            const auto from = f.upload(x);
            const auto to = f.upload(poisoned<std::uint64_t>(2));
            REQUIRE_FALSE(run_listed(
                f, prim::histogram<T>{.x = from, .counts = to, .n = x.size(), .bins = 2, .low = low, .high = high}));
            return f.download(to);
        };
        CHECK(count(std::vector<std::uint8_t>{0, 127, 128, 255}, 0, 256) == std::vector<std::uint64_t>{2, 2});
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        constexpr double half_range = 9223372036854775808.0;
        // The greatest one is rounded to 2^63.
        CHECK(count(std::vector<std::int64_t>{-most - 1, -4096, 0, most}, -half_range, half_range) ==
              std::vector<std::uint64_t>{2, 1});
        CHECK(count(std::vector<std::uint64_t>{0, std::uint64_t(most) + 1}, 0, 2 * half_range) ==
              std::vector<std::uint64_t>{1, 1});
        // The number before the end of the range.
        CHECK(count(std::vector<double>{-1e307, 1e307, std::nextafter(2e307, 0)}, -2e307, 2e307) ==
              std::vector<std::uint64_t>{1, 2});
    }
}

TEST_CASE("refusals of histograms")
{
    using histogram = prim::histogram<float>;
    const auto x = elements(12, 0);
    const auto counts = elements<std::uint64_t>(4, 1);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {histogram{.x = x, .counts = counts, .bins = 4}.check(), errc::invalid_argument, "prim.histogram: n is 0"},
        {histogram{.x = x, .counts = counts, .n = 12}.check(), errc::invalid_argument, "prim.histogram: bins is 0"},
        {histogram{.x = x, .counts = counts, .n = 12, .bins = 4, .low = 1, .high = 1}.check(), errc::invalid_argument,
         "prim.histogram: low is 1, must be less than high, which is 1"},
        {histogram{.x = x, .counts = counts, .n = 12, .bins = 4, .low = nan}.check(), errc::invalid_argument,
         "prim.histogram: low is nan, must be less than high, which is 1"},
        {histogram{.x = x, .counts = counts, .n = 12, .bins = 4, .high = infinity}.check(), errc::invalid_argument,
         "prim.histogram: (high - low) * bins is not finite: low is 0, high is inf, bins is 4"},
        {histogram{.x = x, .counts = counts, .n = 12, .bins = 4, .low = -1e308, .high = 1e308}.check(),
         errc::invalid_argument,
         "prim.histogram: (high - low) * bins is not finite: low is -1e+308, high is 1e+308, bins is 4"},
        {histogram{.x = x, .counts = counts, .n = 13, .bins = 4}.check(), errc::out_of_bounds,
         "prim.histogram: x has 12 elements, needs 13"},
        {histogram{.x = x, .counts = counts, .n = 12, .bins = 5}.check(), errc::out_of_bounds,
         "prim.histogram: counts has 4 elements, needs 5"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
    CHECK((histogram{.x = x, .counts = counts, .n = 12, .bins = 4}.overwrites()));
    CHECK_FALSE((histogram{.x = x, .counts = counts, .n = 12, .bins = 3}.overwrites()));
}

TEST_SUITE_END();

} // namespace test_ops_prim_histogram
