#include "device/refused_loads.hpp"

#include <doctest/doctest.h>

namespace test_device_refused_loads {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::refused_loads;

using time_point = refused_loads::time_point;

constexpr time_point start{1h};
constexpr content_id bad{.high = 1, .low = 2};

content_id numbered(std::uint64_t i)
{
    return {.high = 7, .low = i};
}

} // namespace

TEST_SUITE_BEGIN("refused_loads");

TEST_CASE("a plan is refused for a minute after its load has ended contexts, and no other is")
{
    refused_loads r;
    CHECK(r.left(bad, start) == 0s);
    CHECK(r.add(bad, start) == 1min);
    CHECK(r.left(bad, start) == 60s);
    CHECK(r.left(bad, start + 59s) == 1s);
    CHECK(r.left(bad, start + 60s) == 0s);
    CHECK(r.left(bad, start + 1h) == 0s);
    CHECK(r.left({.high = 1, .low = 3}, start) == 0s);
    CHECK(r.left({.high = 2, .low = 2}, start) == 0s);
}

TEST_CASE("each further refusal lasts twice as long, up to an hour")
{
    refused_loads r;
    auto now = start;
    for (const auto window : {1min, 2min, 4min, 8min, 16min, 32min, 60min, 60min}) {
        CHECK(r.add(bad, now) == window);
        CHECK(r.left(bad, now) == window);
        now += window;
        CHECK(r.left(bad, now) == 0s);
    }
    // However long it has not been tried.
    CHECK(r.add(bad, now + 1000h) == 1h);
    CHECK(r.add(numbered(1), now) == 1min);
}

TEST_CASE("contexts that end while the plan is refused make the same time begin again")
{
    refused_loads r;
    r.add(bad, start);
    CHECK(r.add(bad, start + 50s) == 1min);
    CHECK(r.left(bad, start + 60s) == 50s);
    CHECK(r.left(bad, start + 110s) == 0s);
    CHECK(r.add(bad, start + 110s) == 2min);
}

TEST_CASE("a plan that was loaded, or is permitted, counts as never refused")
{
    refused_loads r;
    r.add(bad, start);
    r.add(bad, start + 1min);
    r.forget(numbered(1));
    CHECK(r.left(bad, start + 1min) == 2min);
    r.forget(bad);
    CHECK(r.left(bad, start + 1min) == 0s);
    CHECK(r.add(bad, start + 5min) == 1min);
    r.add(numbered(1), start + 5min);
    r.clear();
    CHECK(r.left(bad, start + 5min) == 0s);
    CHECK(r.left(numbered(1), start + 5min) == 0s);
    CHECK(r.add(bad, start + 10min) == 1min);
}

TEST_CASE("of more than sixteen plans, the one whose refusal ends first is forgotten")
{
    refused_loads r;
    // Refused for two minutes from then on.
    r.add(bad, start - 1min);
    r.add(bad, start);
    for (std::uint64_t i = 1; i < refused_loads::most; ++i)
        r.add(numbered(i), start + i * 1s);
    CHECK(r.left(bad, start + 20s) == 100s);
    CHECK(r.left(numbered(1), start + 20s) == 41s);
    CHECK(r.left(numbered(15), start + 20s) == 55s);
    r.add(numbered(16), start + 20s);
    CHECK(r.left(numbered(1), start + 20s) == 0s);
    CHECK(r.left(numbered(2), start + 20s) == 42s);
    CHECK(r.left(bad, start + 20s) == 100s);
    // A plan that is in the list takes no other's place.
    r.add(numbered(2), start + 21s);
    CHECK(r.left(numbered(3), start + 21s) == 42s);
    r.add(numbered(17), start + 21s);
    CHECK(r.left(numbered(2), start + 21s) == 60s);
    CHECK(r.left(numbered(3), start + 21s) == 0s);
}

TEST_SUITE_END();

} // namespace test_device_refused_loads
