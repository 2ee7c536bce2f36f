#include "client/latency_histogram.hpp"

#include "client/load_budget.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace {

using coaccel::client::duration_text;
using coaccel::client::latency_histogram;
using coaccel::client::load_budget;
using namespace std::chrono_literals;

} // namespace

TEST_SUITE_BEGIN("client latency histogram");

TEST_CASE("an empty histogram")
{
    const latency_histogram h;
    CHECK(h.count() == 0);
    CHECK(h.mean() == 0ns);
    CHECK(h.least() == 0ns);
    CHECK(h.most() == 0ns);
    CHECK(h.quantile(0.5) == 0ns);
    CHECK(h.chart().empty());
}

TEST_CASE("quantiles are at most an eighth too large")
{
    latency_histogram h;
    for (int i = 1; i <= 1000; ++i)
        h.add(std::chrono::microseconds(i));
    CHECK(h.count() == 1000);
    CHECK(h.mean() == 500500ns);
    CHECK(h.least() == 1us);
    CHECK(h.most() == 1ms);
    for (const double q : {0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0}) {
        const auto exact = std::chrono::nanoseconds(static_cast<std::int64_t>(q * 1e6));
        CHECK(h.quantile(q) >= exact);
        CHECK(h.quantile(q) <= exact + exact / 8 + 1ns);
    }
    CHECK(h.quantile(0) == h.quantile(0.001));
}

TEST_CASE("times of any size are counted")
{
    latency_histogram h;
    h.add(-5ns);
    h.add(0ns);
    h.add(std::chrono::hours(10));
    CHECK(h.count() == 3);
    CHECK(h.least() == 0ns);
    CHECK(h.quantile(1) == std::chrono::hours(10));
    CHECK(!h.chart().empty());
}

TEST_CASE("histograms are added")
{
    latency_histogram a;
    latency_histogram b;
    a.add(1ms);
    b.add(3ms);
    b.add(2ms);
    a.add(b);
    CHECK(a.count() == 3);
    CHECK(a.mean() == 2ms);
    CHECK(a.least() == 1ms);
    CHECK(a.most() == 3ms);
    a.add(latency_histogram());
    CHECK(a.least() == 1ms);
}

TEST_CASE("the chart has a bar for each range")
{
    latency_histogram h;
    for (int i = 0; i < 80; ++i)
        h.add(150us);
    for (int i = 0; i < 20; ++i)
        h.add(700us);
    h.add(1100us);
    CHECK(h.chart() == "    100 us - 200 us          80  " + std::string(40, '#') +
                           "\n    200 us - 500 us           0  \n    500 us - 1 ms            20  " +
                           std::string(10, '#') + "\n      1 ms - 2 ms             1  #\n");
}

TEST_CASE("times as text")
{
    CHECK(duration_text(0ns) == "0 ns");
    CHECK(duration_text(850us) == "850 us");
    CHECK(duration_text(1250us) == "1.25 ms");
    CHECK(duration_text(999999ns) == "1000 us");
    CHECK(duration_text(2500ms) == "2.5 s");
    CHECK(duration_text(std::chrono::hours(1)) == "3600 s");
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("client load budget");

TEST_CASE("a budget ends by count, by time, or by hand")
{
    const load_budget::time_point begin{};
    load_budget counted(2, std::nullopt);
    CHECK(counted.take(begin));
    CHECK(counted.take(begin + 1h));
    CHECK(!counted.take(begin));
    load_budget timed(std::nullopt, begin + 1s);
    CHECK(timed.take(begin));
    CHECK(timed.take(begin + 999ms));
    CHECK(!timed.take(begin + 1s));
    load_budget both(1, begin + 1s);
    CHECK(!both.take(begin + 1s));
    CHECK(both.take(begin));
    CHECK(!both.take(begin));
    load_budget stopped(std::nullopt, std::nullopt);
    CHECK(stopped.take(begin));
    stopped.stop();
    CHECK(stopped.stopped());
    CHECK(!stopped.take(begin));
}

TEST_SUITE_END();
