#include "worker/parent/reply_watch.hpp"

#include <doctest/doctest.h>

namespace test_worker_reply_watch {

namespace {

using namespace std::chrono_literals;
using coaccel::worker::reply_watch;

constexpr auto endless = std::chrono::nanoseconds::max();

struct fixture {
    reply_watch watch{800ms};
    reply_watch::time_point now{100h};

    bool look(bool waiting = true, bool answered = false) { return watch.look(waiting, answered, now); }

    /// Checks as often as next_look() demands, and returns the time until the limit was exceeded.
    std::chrono::nanoseconds until_too_long()
    {
        const auto began = now;
        while (!look() && now < began + 1h)
            now = watch.next_look();
        return now - began;
    }
};

} // namespace

TEST_SUITE_BEGIN("reply_watch");

TEST_CASE_FIXTURE(fixture, "silence is measured from the first check with a request in flight")
{
    CHECK(watch.next_look() == reply_watch::time_point::max());
    CHECK_FALSE(look(false));
    now += 10h;
    CHECK(until_too_long() == 800ms);
}

TEST_CASE_FIXTURE(fixture, "each reply restarts the measurement, and so does a check with no request in flight")
{
    CHECK_FALSE(look());
    for (int i = 0; i < 20; ++i) {
        now += 100ms;
        CHECK_FALSE(look(true, i % 5 == 0));
    }
    CHECK_FALSE(look(true, true));
    CHECK(until_too_long() == 800ms);
    CHECK_FALSE(look(false));
    CHECK(watch.next_look() == reply_watch::time_point::max());
    CHECK(until_too_long() == 800ms);
}

TEST_CASE_FIXTURE(fixture, "frequent checks do not change the limit")
{
    const auto began = now;
    while (!look())
        now += 10us;
    CHECK(now - began == 800ms);
}

TEST_CASE_FIXTURE(fixture, "a late check counts as one check interval")
{
    CHECK_FALSE(look());
    now += 1h;
    CHECK_FALSE(look());
    CHECK(until_too_long() == 700ms);
}

TEST_CASE_FIXTURE(fixture, "a clock that goes backwards adds no time")
{
    CHECK_FALSE(look());
    now -= 1h;
    CHECK_FALSE(look());
    CHECK(until_too_long() == 800ms);
}

TEST_CASE("without a limit no check is needed")
{
    reply_watch watch(0ns);
    reply_watch::time_point now{};
    for (int i = 0; i < 10; ++i, now += 1000h)
        CHECK_FALSE(watch.look(true, false, now));
    CHECK(watch.next_look() == reply_watch::time_point::max());
}

TEST_CASE("the limit follows from the options and does not overflow")
{
    CHECK(reply_watch::limit_for(0ns, 30s) == 0ns);
    CHECK(reply_watch::limit_for(-1s, 30s) == 0ns);
    CHECK(reply_watch::limit_for(300ms, 30s) == 30s + 300ms);
    CHECK(reply_watch::limit_for(endless, endless) > 24h);
    reply_watch watch(reply_watch::limit_for(endless, endless));
    reply_watch::time_point now{100h};
    CHECK_FALSE(watch.look(true, false, now));
    CHECK(watch.next_look() > now);
}

TEST_SUITE_END();

} // namespace test_worker_reply_watch
