#include "worker/parent/heartbeat_monitor.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace test_worker_heartbeat_monitor {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using worker::heartbeat_monitor;

/// Checks a worker at simulated times.
struct looker {
    explicit looker(std::chrono::nanoseconds heartbeat, std::chrono::nanoseconds start_timeout = 60s)
        : judge(start_timeout, heartbeat, now)
    {}

    errc look(std::uint64_t beats, std::chrono::nanoseconds later)
    {
        now += later;
        return judge.look(beats, now);
    }
    errc look(std::uint64_t beats) { return look(beats, judge.look_every()); }

    /// The number of checks until the worker is given up without another beat.
    int looks_left(std::uint64_t beats)
    {
        int n = 1;
        while (look(beats) == errc{} && n < 1000)
            ++n;
        return n;
    }

    heartbeat_monitor::time_point now{};
    heartbeat_monitor judge;
};

} // namespace

TEST_SUITE_BEGIN("heartbeat_monitor");

TEST_CASE("silence for one heartbeat interval is a hang, and a beat in time is not")
{
    looker l(100ms);
    CHECK(l.judge.look_every() == 25ms);
    CHECK(l.look(1) == errc{});
    CHECK(l.look(1) == errc{});
    CHECK(l.look(1) == errc{});
    CHECK(l.look(1) == errc{});
    CHECK(l.look(1) == errc::worker_hung);
    looker regular(100ms);
    for (std::uint64_t i = 1; i < 100; ++i)
        CHECK(regular.look(i / 3) == errc{});
    CHECK(regular.looks_left(33) == 4);
}

TEST_CASE("a worker that is checked rarely has the full heartbeat interval")
{
    looker l(5s);
    CHECK(l.judge.look_every() == 500ms);
    CHECK(l.look(1) == errc{});
    CHECK(l.looks_left(1) == 10);
}

TEST_CASE("time without checks does not count")
{
    for (const auto gap : std::initializer_list<std::chrono::nanoseconds>{100ms, 1s, 24h}) {
        CAPTURE(gap.count());
        looker l(100ms);
        CHECK(l.look(1) == errc{});
        CHECK(l.look(1, gap) == errc{});
        CHECK(l.look(2) == errc{});
        // A dead worker is still detected, even if each check is late.
        CHECK(l.look(2, gap) == errc{});
        CHECK(l.look(2, gap) == errc{});
        CHECK(l.look(2, gap) == errc{});
        CHECK(l.look(2, gap) == errc::worker_hung);
    }
}

TEST_CASE("before the first beat the start timeout applies, and without a heartbeat there is no other limit")
{
    looker l(100ms, 1s);
    CHECK(l.looks_left(0) == 40);
    CHECK(looker(100ms, 1s).look(0, 24h) == errc{});
    looker endless(0s, 1s);
    CHECK(endless.look(1) == errc{});
    CHECK(endless.looks_left(1) == 1000);
    looker longest(std::chrono::nanoseconds::max(), std::chrono::nanoseconds::max());
    CHECK(longest.looks_left(0) == 1000);
    CHECK(longest.looks_left(1) == 1000);
}

TEST_SUITE_END();

} // namespace test_worker_heartbeat_monitor
