#include "worker/process/line_limit.hpp"

#include <doctest/doctest.h>

namespace test_worker_line_limit {

namespace {

using namespace std::chrono_literals;
using coaccel::worker::line_limit;

struct fixture {
    line_limit::time_point now{100h};
    line_limit limit{now};

    /// How many of `count` lines are logged.
    int lines(int count)
    {
        int taken = 0;
        for (int i = 0; i < count; ++i)
            taken += limit.take(now);
        return taken;
    }
};

} // namespace

TEST_SUITE_BEGIN("line_limit");

TEST_CASE_FIXTURE(fixture, "a burst passes, and the lines after it are dropped")
{
    CHECK(lines(5000) == line_limit::burst);
    CHECK(lines(5000) == 0);
}

TEST_CASE_FIXTURE(fixture, "after a burst lines pass at the limited rate")
{
    (void)lines(5000);
    now += 1s;
    CHECK(lines(5000) == line_limit::per_second);
    now += 10ms;
    CHECK(lines(5000) == 1);
    now += 9ms;
    CHECK(lines(10) == 0);
    now += 1ms;
    CHECK(lines(10) == 1);
}

TEST_CASE_FIXTURE(fixture, "a long silence allows one burst")
{
    (void)lines(5000);
    now += 10h;
    CHECK(lines(5000) == line_limit::burst);
    now = line_limit::time_point::max();
    CHECK(lines(5000) == line_limit::burst);
}

TEST_CASE_FIXTURE(fixture, "a steady flow below the rate is never dropped")
{
    for (int i = 0; i < 10'000; ++i, now += 10ms)
        REQUIRE(limit.take(now));
    CHECK(limit.report(now) == 0);
}

TEST_CASE_FIXTURE(fixture, "dropped lines are counted and reported at intervals")
{
    CHECK(limit.report(now) == 0);
    (void)lines(line_limit::burst + 7);
    CHECK(limit.report(now) == 7);
    CHECK(limit.report(now) == 0);
    CHECK(lines(5) == 0);
    CHECK(limit.report(now) == 0);
    now += line_limit::report_interval;
    CHECK(limit.report(now) == 5);
    now += line_limit::report_interval;
    CHECK(limit.report(now) == 0);
    CHECK(limit.last_report() == 0);
    (void)lines(5000);
    CHECK(limit.last_report() > 0);
    CHECK(limit.last_report() == 0);
}

TEST_SUITE_END();

} // namespace test_worker_line_limit
