#include "device/standby_slot.hpp"

#include <doctest/doctest.h>

namespace test_device_standby_slot {

namespace {

using namespace coaccel::detail;
using namespace std::chrono_literals;
using time_point = standby_slot::time_point;

constexpr time_point start{1h};

} // namespace

TEST_SUITE_BEGIN("standby_slot");

TEST_CASE("a device without standbys never makes one")
{
    const standby_slot s(false);
    CHECK_FALSE(s.due(start, true));
    CHECK(s.next_look(true) == time_point::max());
}

TEST_CASE("the first standby is made when there are plans, later ones always")
{
    standby_slot s(true);
    CHECK_FALSE(s.due(start, false));
    CHECK(s.due(start, true));
    s.begin(start);
    CHECK(s.creating());
    CHECK_FALSE(s.due(start, true));
    s.made();
    CHECK(s.present());
    CHECK_FALSE(s.due(start + 1h, true));
    // It takes over.
    s.left();
    s.renewed();
    CHECK(s.empty());
    CHECK(s.due(start, false));
}

TEST_CASE("a lost standby is replaced, at most one per pause")
{
    standby_slot s(true);
    s.begin(start);
    s.made();
    s.left();
    CHECK_FALSE(s.due(start, true));
    CHECK(s.next_look(true) == start + standby_slot::pause);
    CHECK(s.due(start + standby_slot::pause, true));
    s.begin(start + 1h);
    s.made();
    s.left();
    CHECK(s.next_look(true) == start + 1h + standby_slot::pause);
}

TEST_CASE("after a failure the next attempt follows the next context")
{
    standby_slot s(true);
    s.begin(start);
    s.failed();
    CHECK(s.empty());
    CHECK_FALSE(s.due(start + 1h, true));
    CHECK(s.next_look(true) == time_point::max());
    s.renewed();
    CHECK(s.due(start, true));
}

TEST_CASE("a device that waits for its standby waits for this one only")
{
    for (const bool fails : {false, true}) {
        standby_slot s(true);
        s.begin(start);
        CHECK_FALSE(s.wanted());
        s.want();
        CHECK(s.wanted());
        if (fails) {
            s.failed();
        } else {
            s.made();
            s.left();
        }
        CHECK_FALSE(s.wanted());
        s.renewed();
        s.begin(start);
        CHECK_FALSE(s.wanted());
    }
}

TEST_CASE("none is made while the last one is being ended")
{
    standby_slot s(true);
    s.begin(start);
    s.made();
    s.end();
    CHECK_FALSE(s.present());
    CHECK_FALSE(s.empty());
    CHECK_FALSE(s.due(start + 1h, true));
    s.left();
    CHECK(s.due(start + 1h, true));
}

TEST_SUITE_END();

} // namespace test_device_standby_slot
