#include "context/lanes/lane_selector.hpp"

#include <doctest/doctest.h>

#include <set>

namespace {

using namespace coaccel;
using detail::lane_selector;

constexpr library libraries[] = {library::memory, library::blas, library::user, library::jit, library::rand};
constexpr priority priorities[] = {priority::low, priority::normal, priority::high};

} // namespace

TEST_SUITE_BEGIN("lane_selector");

TEST_CASE("per_library gives each library a lane, the same each time")
{
    lane_selector choice(lane_policy::per_library());
    std::set<std::size_t> keys;
    for (const auto lib : libraries) {
        const auto key = choice.choose(lib, {}).value();
        CHECK(keys.insert(key).second);
        for (int i = 0; i < 3; ++i)
            CHECK(choice.choose(lib, {}).value() == key);
    }
    CHECK(keys.size() == library_count);
}

TEST_CASE("single gives every library the same lane")
{
    lane_selector choice(lane_policy::single());
    const auto key = choice.choose(library::memory, {}).value();
    for (const auto lib : libraries)
        for (int i = 0; i < 5; ++i)
            CHECK(choice.choose(lib, {}).value() == key);
}

TEST_CASE("pooled uses its lanes in turn")
{
    for (int count = 1; count <= lane_policy::max_pooled; ++count) {
        CAPTURE(count);
        lane_selector choice(lane_policy::pooled(count));
        std::vector<std::size_t> first;
        for (int i = 0; i < count; ++i)
            first.push_back(choice.choose(libraries[i % 3], {}).value());
        CHECK(std::set<std::size_t>(first.begin(), first.end()).size() == static_cast<std::size_t>(count));
        for (int round = 0; round < 3; ++round)
            for (const auto key : first)
                CHECK(choice.choose(library::blas, {}).value() == key);
    }
}

TEST_CASE("the caller's lanes differ from the policy's lanes, under every policy")
{
    for (const auto policy : {lane_policy::per_library(), lane_policy::single(), lane_policy::pooled(3)}) {
        lane_selector choice(policy);
        std::set<std::size_t> theirs;
        for (int i = 0; i < 12; ++i)
            theirs.insert(choice.choose(libraries[i % 3], {}).value());
        std::set<std::size_t> callers;
        for (int lane = 0; lane < lane_selector::caller_lanes; ++lane) {
            const auto key = choice.choose(library::blas, {.lane = lane}).value();
            CHECK(choice.choose(library::memory, {.lane = lane}).value() == key);
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
                const auto key = choice.choose(library::blas, {.priority = p, .lane = lane}).value();
                CHECK(key < choice.keys());
                CHECK(lane_selector::priority_of(key) == p);
                keys.insert(key);
            }
        CHECK(keys.size() == 3 * (1 + lane_selector::caller_lanes));
    }
}

TEST_CASE("lanes and priorities that do not exist are refused")
{
    lane_selector choice(lane_policy::pooled(2));
    const auto before = choice.choose(library::blas, {}).value();
    for (const int lane : {-2, lane_selector::caller_lanes, 1000, -1000}) {
        CAPTURE(lane);
        CHECK(choice.choose(library::blas, {.lane = lane}).error() == errc::invalid_argument);
    }
    CHECK(choice.choose(library::blas, {.priority = static_cast<priority>(3)}).error() == errc::invalid_argument);
    // A rejected request does not advance the round robin.
    CHECK(choice.choose(library::blas, {}).value() != before);
    CHECK(choice.choose(library::blas, {}).value() == before);
}

TEST_SUITE_END();
