#include <coaccel/telemetry/histogram.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace test_telemetry_histogram {

namespace {

using namespace coaccel::telemetry;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("histogram");

TEST_CASE("quantiles are at most an eighth above the exact value")
{
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> times(10, 3);
    const histogram h;
    std::vector<double> all;
    for (int i = 0; i < 20000; ++i) {
        const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(times(random)));
        all.push_back(std::chrono::duration<double>(time).count());
        h.observe(time);
    }
    std::ranges::sort(all);
    const auto s = h.snapshot();
    CHECK(s.count == all.size());
    for (const double q : {0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank =
            std::max(static_cast<std::size_t>(std::ceil(q * static_cast<double>(all.size()))), std::size_t{1}) - 1;
        CAPTURE(q);
        CHECK(s.quantile(q) >= all[rank] * (1 - 1e-12));
        CHECK(s.quantile(q) <= all[rank] * 1.126 + 2e-9);
    }
    double sum = 0;
    for (const double x : all)
        sum += x;
    CHECK(s.sum == doctest::Approx(sum));
}

TEST_CASE("powers of two are bounds, and a value equal to a bound is within it")
{
    const histogram h(histogram_options::sizes(64));
    for (const int size : {0, 1, 2, 3, 4, 8, 9, 64, 65, 1000})
        h.observe(size);
    const auto s = h.snapshot();
    CHECK(s.bounds == std::vector<double>{1, 2, 4, 8, 16, 32, 64});
    CHECK(s.count_up_to(1) == 2);
    CHECK(s.count_up_to(2) == 3);
    CHECK(s.count_up_to(4) == 5);
    CHECK(s.count_up_to(8) == 6);
    CHECK(s.count_up_to(16) == 7);
    CHECK(s.count_up_to(64) == 8);
    CHECK(s.count == 10);
    CHECK(s.sum == 1156);
}

TEST_CASE("durations have bounds from a microsecond to a minute")
{
    const auto s = histogram().snapshot();
    REQUIRE(s.bounds.size() == 26);
    CHECK(s.bounds.front() == 1.024e-06);
    CHECK(s.bounds[10] == 1.048576e-03);
    CHECK(s.bounds.back() == 34.359738368);
    CHECK(s.count == 0);
    CHECK(s.sum == 0);
    CHECK(s.quantile(0.5) == 0);
}

TEST_CASE("values outside the range are counted at its ends")
{
    const histogram h;
    h.observe(-5ns);
    h.observe(-1.0);
    h.observe(1e300);
    h.observe(std::numeric_limits<double>::infinity());
    h.observe(std::chrono::nanoseconds::max());
    h.observe(std::numeric_limits<double>::quiet_NaN());
    const auto s = h.snapshot();
    CHECK(s.count == 5);
    REQUIRE(s.buckets.size() == 2);
    CHECK(s.buckets[0] == histogram_snapshot::bucket{0, 2});
    CHECK(s.buckets[1].count == 3);
    CHECK(std::isfinite(s.sum));
}

TEST_CASE("a resolution that makes no sense counts as a nanosecond")
{
    for (const double resolution :
         {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        const histogram h({.resolution = resolution});
        h.observe(1us);
        CHECK(h.snapshot().sum == 1e-6);
    }
}

TEST_CASE("values above the last bucket count as its bound, so that the sum does not wrap")
{
    const histogram times, numbers;
    for (int i = 0; i < 10; ++i) {
        times.observe(std::chrono::nanoseconds::max());
        numbers.observe(1e300);
    }
    for (const auto& s : {times.snapshot(), numbers.snapshot()}) {
        REQUIRE(s.buckets.size() == 1);
        CHECK(s.buckets[0].upper > 4000);
        CHECK(s.sum == doctest::Approx(10 * s.buckets[0].upper));
    }
}

TEST_CASE("quantiles outside 0 to 1")
{
    const histogram h(histogram_options::sizes());
    h.observe(1);
    h.observe(4);
    const auto s = h.snapshot();
    CHECK(s.quantile(-1) == 1);
    CHECK(s.quantile(2) == 4);
    CHECK(std::isnan(s.quantile(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("durations and numbers are in the same unit")
{
    for (const histogram_options o : {histogram_options{}, histogram_options{.resolution = 1e-6}}) {
        const histogram h(o);
        h.observe(2ms);
        h.observe(0.002);
        const auto s = h.snapshot();
        CHECK(s.buckets.size() == 1);
        CHECK(s.sum == doctest::Approx(0.004));
    }
}

TEST_CASE("a duration that is observed several times at once counts as often")
{
    for (const double resolution : {1e-9, 1e-6}) {
        const histogram at_once({.resolution = resolution});
        const histogram one_by_one({.resolution = resolution});
        for (const auto& [time, times] :
             {std::pair(-1us, 2), std::pair(7us, 64), std::pair(3000us, 1), std::pair(5us, 0)}) {
            at_once.observe(time, static_cast<std::uint64_t>(times));
            for (int i = 0; i < times; ++i)
                one_by_one.observe(time);
        }
        CHECK(at_once.snapshot().count == 67);
        CHECK(at_once.snapshot() == one_by_one.snapshot());
    }
}

TEST_CASE("threads observe at the same time, and copies share the content")
{
    const histogram h(histogram_options::sizes());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([h] {
            for (int i = 0; i < 10000; ++i)
                h.observe(i % 10);
        });
    for (auto& t : threads)
        t.join();
    const auto s = h.snapshot();
    CHECK(s.count == 40000);
    CHECK(s.sum == 4 * 45000);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_histogram
