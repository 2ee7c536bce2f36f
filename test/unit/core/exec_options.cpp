#include <coaccel/core/exec_options.hpp>

#include <doctest/doctest.h>

#include <chrono>

namespace test_core_exec_options {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;

} // namespace

TEST_SUITE_BEGIN("exec_options");

TEST_CASE("the defaults set no limit and no preference")
{
    constexpr exec_options o;
    static_assert(o.deadline == exec_options::no_deadline);
    static_assert(o.priority == priority::normal);
    static_assert(o.lane == exec_options::any_lane);
    static_assert(o.when_full == when_full::wait);
}

TEST_CASE("within counts from now")
{
    const auto before = exec_options::clock::now();
    const auto soon = within(10s);
    const auto past = within(-1s);
    const auto at_once = within(0ns);
    const auto after = exec_options::clock::now();
    CHECK(soon.deadline >= before + 10s);
    CHECK(soon.deadline <= after + 10s);
    CHECK(past.deadline < after);
    CHECK(at_once.deadline <= after);
    CHECK(soon.priority == priority::normal);
    CHECK(soon.lane == exec_options::any_lane);
    const auto fraction = within(std::chrono::duration<double>(1.5)).deadline;
    CHECK(fraction <= exec_options::clock::now() + 1500ms);
}

TEST_CASE("within a duration beyond the clock's range sets no deadline")
{
    CHECK(within(exec_options::clock::duration::max()).deadline == exec_options::no_deadline);
    CHECK(within(std::chrono::hours(std::chrono::hours::max().count() / 4)).deadline == exec_options::no_deadline);
    CHECK(within(std::chrono::years(1000)).deadline == exec_options::no_deadline);
}

TEST_SUITE_END();

} // namespace test_core_exec_options
