#include "device/load_suspicion.hpp"

#include "device/load_isolation.hpp"

#include <doctest/doctest.h>

namespace test_device_load_suspicion {

namespace {

using namespace coaccel::detail;
using namespace std::chrono_literals;

using time_point = load_suspicion::time_point;

constexpr time_point start{1h};

} // namespace

TEST_SUITE_BEGIN("load_suspicion");

TEST_CASE("a plan is suspect until it is loaded, and for a minute after a loss while it was being loaded")
{
    load_suspicion l;
    CHECK_FALSE(l.suspect(start));
    l.lost(start);
    CHECK(l.suspect(start));
    CHECK(l.suspect(start + 24h));
    l.loaded();
    CHECK(l.suspect(start + 59s));
    CHECK_FALSE(l.suspect(start + 60s));
    CHECK_FALSE(l.refused());
}

TEST_CASE("the second loss while it is loaded alone refuses it, and the first one explains those before")
{
    load_suspicion l;
    l.lost(start);
    l.lost(start + 1s);
    CHECK(l.lost_alone(start + 2s) == 2);
    CHECK_FALSE(l.refused());
    CHECK(l.lost_alone(start + 3s) == 0);
    CHECK(l.refused());
    CHECK(l.refused_on_standby());
}

TEST_CASE("losses beside other requests, or more than a minute apart with loads in between, refuse nothing")
{
    load_suspicion l;
    for (int i = 0; i < 10; ++i)
        l.lost(start + i * 1s);
    CHECK_FALSE(l.refused());
    l.loaded();
    for (int i = 0; i < 10; ++i) {
        CHECK(l.lost_alone(start + 1h + i * 1min) == 0);
        l.loaded();
    }
    CHECK_FALSE(l.refused());
}

TEST_CASE("losses that take more than a minute each refuse the plan if it was not loaded in between")
{
    load_suspicion l;
    l.lost(start);
    CHECK(l.suspect(start + 90s));
    CHECK(l.lost_alone(start + 90s) == 1);
    CHECK_FALSE(l.refused());
    CHECK(l.suspect(start + 180s));
    CHECK(l.lost_alone(start + 180s) == 0);
    CHECK(l.refused());
}

TEST_CASE("a loss a minute after a load counts as the first one")
{
    load_suspicion l;
    CHECK(l.lost_alone(start) == 0);
    l.loaded();
    l.lost(start + 2min);
    CHECK(l.lost_alone(start + 121s) == 1);
    CHECK_FALSE(l.refused());
    CHECK(l.lost_alone(start + 122s) == 0);
    CHECK(l.refused());
}

TEST_CASE("a loss with another cause is not explained again")
{
    load_suspicion l;
    l.lost(start);
    l.explained();
    CHECK(l.lost_alone(start + 1s) == 0);
}

TEST_CASE(
    "a plan that has ended two standbys, however slowly, is not loaded on a standby until it is loaded in a context")
{
    load_suspicion l;
    l.loaded();
    l.lost_standby(start);
    CHECK(l.suspect(start));
    CHECK_FALSE(l.refused_on_standby());
    l.lost_standby(start + 10min);
    CHECK(l.refused_on_standby());
    CHECK_FALSE(l.refused());
    l.loaded();
    CHECK_FALSE(l.refused_on_standby());
}

TEST_CASE("losses of standbys with a load on a standby in between refuse nothing")
{
    load_suspicion l;
    for (int i = 0; i < 10; ++i) {
        l.lost_standby(start + i * 1s);
        CHECK_FALSE(l.refused_on_standby());
        l.loaded_on_standby();
    }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("load_isolation");

TEST_CASE("others wait for a suspect load until the limit")
{
    load_isolation i;
    CHECK_FALSE(i.holds(false));
    CHECK(i.holds(true));
    i.look(true, start, 5s);
    i.look(true, start + 4s, 5s);
    CHECK(i.end() == start + 5s);
    CHECK_FALSE(i.expire(start + 4s));
    CHECK(i.holds(true));
    CHECK(i.expire(start + 5s));
    CHECK_FALSE(i.expire(start + 6s));
    CHECK_FALSE(i.holds(true));
    // Until the next context, also for further loads.
    i.look(true, start + 6s, 5s);
    CHECK(i.end() == time_point::max());
    i.look(false, start + 7s, 5s);
    CHECK_FALSE(i.holds(true));
    (void)i.take_lost();
    CHECK(i.holds(true));
}

TEST_CASE("a suspect load that has waited for others gets the whole limit for itself")
{
    load_isolation i;
    i.look(true, start, 5s);
    i.started(true, start + 4s, 5s);
    i.look(true, start + 4s, 5s);
    CHECK(i.end() == start + 9s);
    CHECK_FALSE(i.expire(start + 5s));
    // A request that is not a suspect's has no limit.
    i.look(false, start + 6s, 5s);
    i.started(false, start + 6s, 5s);
    CHECK(i.end() == time_point::max());
}

TEST_CASE("a lost load was alone unless something else was started after it")
{
    load_isolation i;
    CHECK(i.take_lost().plan == 0);
    i.started(true, start, 5s);
    i.lost(7);
    auto lost = i.take_lost();
    CHECK(lost.plan == 7);
    CHECK(lost.alone);
    CHECK(i.take_lost().plan == 0);
    i.lost(7);
    CHECK_FALSE(i.take_lost().alone);
    i.started(true, start, 5s);
    i.other_started();
    i.lost(8);
    CHECK_FALSE(i.take_lost().alone);
}

TEST_CASE("a suspect keeps others for longer than a hang is looked for")
{
    CHECK(longest_isolation(0s) == 5s);
    CHECK(longest_isolation(10s) == 12s);
    CHECK(longest_isolation(std::chrono::nanoseconds::max()) == 24h + 2s);
}

TEST_SUITE_END();

} // namespace test_device_load_suspicion
