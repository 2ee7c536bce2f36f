#include "context/lanes/lane_selector.hpp"

#include <doctest/doctest.h>

#include <set>

namespace test_context_lane_selector {

namespace {

using namespace coaccel;
using detail::lane_selector;

constexpr library libraries[] = {library::memory, library::blas, library::user, library::jit,
                                 library::rand,   library::plan, library::prim};
constexpr priority priorities[] = {priority::low, priority::normal, priority::high};

} // namespace

TEST_SUITE_BEGIN("lane_selector");

TEST_CASE("per_library gives each library a lane, the same each time")
{
    lane_selector choice(lane_policy::per_library());
    std::set<std::size_t> keys;
    for (const auto lib : libraries) {
        const auto key = choice.choose(lib, {});
        CHECK(keys.insert(key).second);
        for (int i = 0; i < 3; ++i)
            CHECK(choice.choose(lib, {}) == key);
    }
    CHECK(keys.size() == library_count);
}

TEST_CASE("single gives every library the same lane")
{
    lane_selector choice(lane_policy::single());
    const auto key = choice.choose(library::memory, {});
    for (const auto lib : libraries)
        for (int i = 0; i < 5; ++i)
            CHECK(choice.choose(lib, {}) == key);
}

TEST_CASE("pooled uses its lanes in turn")
{
    for (int count = 1; count <= lane_policy::max_pooled; ++count) {
        CAPTURE(count);
        lane_selector choice(lane_policy::pooled(count));
        std::vector<std::size_t> first;
        for (int i = 0; i < count; ++i)
            first.push_back(choice.choose(libraries[i % 3], {}));
        CHECK(std::set<std::size_t>(first.begin(), first.end()).size() == static_cast<std::size_t>(count));
        for (int round = 0; round < 3; ++round)
            for (const auto key : first)
                CHECK(choice.choose(library::blas, {}) == key);
    }
}

TEST_CASE("the caller's lanes differ from the policy's lanes, under every policy")
{
    for (const auto policy : {lane_policy::per_library(), lane_policy::single(), lane_policy::pooled(3)}) {
        lane_selector choice(policy);
        std::set<std::size_t> theirs;
        for (int i = 0; i < 12; ++i)
            theirs.insert(choice.choose(libraries[i % 3], {}));
        std::set<std::size_t> callers;
        for (int lane = 0; lane < lane_selector::caller_lanes; ++lane) {
            const auto key = choice.choose(library::blas, {.lane = lane});
            CHECK(choice.choose(library::memory, {.lane = lane}) == key);
            CHECK(!theirs.contains(key));
            CHECK(callers.insert(key).second);
        }
    }
}

TEST_CASE("every priority has its own lanes, and a key tells its priority")
{
    for (const auto policy : {lane_policy::per_library(), lane_policy::single(), lane_policy::pooled(2)}) {
        lane_selector choice(policy);
        std::set<std::size_t> keys;
        for (const auto p : priorities)
            for (int lane = -1; lane < lane_selector::caller_lanes; ++lane) {
                const auto key = choice.choose(library::blas, {.priority = p, .lane = lane});
                CHECK(key < choice.keys());
                CHECK(lane_selector::priority_of(key) == p);
                keys.insert(key);
            }
        CHECK(keys.size() == 3 * (1 + lane_selector::caller_lanes));
    }
}

TEST_CASE("chained lanes have the first keys of their priority, and the caller's lanes other keys")
{
    lane_selector choice(lane_policy::chained(3));
    CHECK(choice.policy_lanes() == 3);
    CHECK(choice.is_chained({}));
    CHECK(choice.is_chained({.priority = priority::high}));
    CHECK_FALSE(choice.is_chained({.lane = 0}));
    CHECK_FALSE(lane_selector(lane_policy::pooled(3)).is_chained({}));
    std::set<std::size_t> keys;
    for (const auto p : priorities) {
        for (std::size_t i = 0; i < choice.policy_lanes(); ++i) {
            keys.insert(lane_selector::key_of(i, p));
            CHECK(lane_selector::priority_of(lane_selector::key_of(i, p)) == p);
        }
        for (int lane = 0; lane < lane_selector::caller_lanes; ++lane)
            keys.insert(choice.choose(library::blas, {.priority = p, .lane = lane}));
    }
    CHECK(keys.size() == choice.keys());
    CHECK(*keys.rbegin() < choice.keys());
}

TEST_CASE("lanes and priorities that do not exist are refused")
{
    for (const int lane : {-2, lane_selector::caller_lanes, 1000, -1000}) {
        CAPTURE(lane);
        CHECK(lane_selector::check({.lane = lane}) == errc::invalid_argument);
    }
    CHECK(lane_selector::check({.priority = static_cast<priority>(3)}) == errc::invalid_argument);
    for (const auto p : priorities)
        for (int lane = -1; lane < lane_selector::caller_lanes; ++lane)
            CHECK_FALSE(lane_selector::check({.priority = p, .lane = lane}));
}

TEST_SUITE_END();

} // namespace test_context_lane_selector
