#include "device/timer_rule.hpp"

#include <doctest/doctest.h>

namespace test_device_timer_rule {

namespace {

using coaccel::detail::timer_rule;
using action = timer_rule::action;

constexpr auto never = timer_rule::time_point::max();

timer_rule::time_point at(int ms)
{
    return timer_rule::time_point(std::chrono::milliseconds(ms));
}

} // namespace

TEST_SUITE_BEGIN("timer_rule");

TEST_CASE("a timer that is not needed is not touched")
{
    timer_rule rule;
    CHECK(rule.wait_until(never, at(0)) == action::none);
    CHECK(rule.wait_until(never, at(1)) == action::none);
}

TEST_CASE("a timer is set once for the same time")
{
    timer_rule rule;
    CHECK(rule.wait_until(at(10), at(0)) == action::set);
    CHECK(rule.wait_until(at(10), at(1)) == action::none);
}

TEST_CASE("an earlier time is set, a later one waits until the timer has expired")
{
    timer_rule rule;
    CHECK(rule.wait_until(at(10), at(0)) == action::set);
    CHECK(rule.wait_until(at(5), at(1)) == action::set);
    CHECK(rule.wait_until(at(20), at(2)) == action::none);
    CHECK(rule.wait_until(at(20), at(5)) == action::set);
}

TEST_CASE("a timer is cancelled in the second turn without anything to wait for")
{
    timer_rule rule;
    CHECK(rule.wait_until(at(10), at(0)) == action::set);
    CHECK(rule.wait_until(never, at(1)) == action::look_again);
    CHECK(rule.wait_until(never, at(1)) == action::cancel);
    CHECK(rule.wait_until(never, at(2)) == action::none);
    CHECK(rule.wait_until(at(30), at(3)) == action::set);
}

TEST_CASE("work that arrives meanwhile keeps the timer")
{
    timer_rule rule;
    CHECK(rule.wait_until(at(10), at(0)) == action::set);
    CHECK(rule.wait_until(never, at(1)) == action::look_again);
    CHECK(rule.wait_until(at(20), at(2)) == action::none);
    CHECK(rule.wait_until(never, at(3)) == action::look_again);
    CHECK(rule.wait_until(never, at(3)) == action::cancel);
}

TEST_SUITE_END();

} // namespace test_device_timer_rule
