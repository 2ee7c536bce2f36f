#include "device/latency.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace test_device_latency {

namespace {

using coaccel::detail::latency_histogram;
using std::chrono::nanoseconds;

TEST_SUITE_BEGIN("latency_histogram");

TEST_CASE("quantiles are at most an eighth above the exact value")
{
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> times(10, 3);
    latency_histogram h;
    std::vector<std::int64_t> all;
    for (int i = 0; i < 20000; ++i) {
        const auto ns = static_cast<std::int64_t>(times(random));
        all.push_back(ns);
        h.add(nanoseconds(ns));
    }
    std::ranges::sort(all);
    for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(all.size()))) - 1;
        const auto truth = static_cast<double>(all[rank]);
        const auto told = static_cast<double>(h.quantile(q).count());
        CAPTURE(q);
        CHECK(told >= truth);
        CHECK(told <= truth * 1.125 + 1);
    }
    CHECK(h.count() == all.size());
    CHECK(h.max().count() == all.back());
}

TEST_CASE("powers of two are upper bounds of buckets")
{
    latency_histogram h;
    for (const int ns : {0, 1, 1024, 1025, 1024})
        h.add(nanoseconds(ns));
    const auto row = h.summary("op");
    CHECK(row.buckets ==
          std::vector<coaccel::latency_bucket>{{nanoseconds(1), 2}, {nanoseconds(1024), 2}, {nanoseconds(1152), 1}});
    CHECK(latency_histogram().summary("op").buckets.empty());
}

TEST_CASE("negative, zero and very long durations are counted")
{
    latency_histogram h;
    CHECK(h.quantile(0.5) == nanoseconds(0));
    h.add(nanoseconds(-5));
    h.add(nanoseconds(0));
    CHECK(h.quantile(1.0) == nanoseconds(0));
    h.add(std::chrono::hours(100));
    CHECK(h.quantile(1.0) <= std::chrono::hours(100));
    CHECK(h.max() == std::chrono::hours(100));
    const auto s = h.summary("op");
    CHECK(s.op == "op");
    CHECK(s.count == 3);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_latency
