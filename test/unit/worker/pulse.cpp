#include "worker/pulse.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using worker::pulse;

/// Looks at a worker when it is told to.
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

    /// How many looks it takes to be given up without a further beat.
    int looks_left(std::uint64_t beats)
    {
        int n = 1;
        while (look(beats) == errc{} && n < 1000)
            ++n;
        return n;
    }

    pulse::time_point now{};
    pulse judge;
};

} // namespace

TEST_SUITE_BEGIN("pulse");

TEST_CASE("silence for a heartbeat is a hang, and a beat in time is none")
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

TEST_CASE("a worker looked at rarely has as much time")
{
    looker l(5s);
    CHECK(l.judge.look_every() == 500ms);
    CHECK(l.look(1) == errc{});
    CHECK(l.looks_left(1) == 10);
}

TEST_CASE("time in which nobody looked does not count")
{
    for (const auto gap : std::initializer_list<std::chrono::nanoseconds>{100ms, 1s, 24h}) {
        CAPTURE(gap.count());
        looker l(100ms);
        CHECK(l.look(1) == errc{});
        CHECK(l.look(1, gap) == errc{});
        CHECK(l.look(2) == errc{});
        // One that is dead is found out all the same, also when each look is late.
        CHECK(l.look(2, gap) == errc{});
        CHECK(l.look(2, gap) == errc{});
        CHECK(l.look(2, gap) == errc{});
        CHECK(l.look(2, gap) == errc::worker_hung);
    }
}

TEST_CASE("without a beat the time to start counts, and without a heartbeat nothing else")
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
