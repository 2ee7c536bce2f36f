#include "context/lanes/choose_chained.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace test_context_choose_chained {

namespace {

using namespace coaccel::detail;

/// Four lanes with ids from 10 on. The tail of each is at ticket 100.
std::vector<chain_lane> lanes_with(const std::vector<std::size_t>& loads)
{
    std::vector<chain_lane> all;
    for (const std::size_t load : loads)
        all.push_back({{static_cast<lane_id>(10 + all.size()), 100}, load});
    return all;
}

point tail(std::size_t lane)
{
    return {static_cast<lane_id>(10 + lane), 100};
}

point before_tail(std::size_t lane)
{
    return {static_cast<lane_id>(10 + lane), 99};
}

TEST_SUITE_BEGIN("choose_chained");

TEST_CASE("a request follows its predecessor if that is the last one on its lane")
{
    struct {
        const char* name;
        std::vector<std::size_t> loads;
        frontier waits;
        std::size_t expected;
    } const all[] = {
        {"no predecessor", {3, 1, 2, 4}, {}, 1},
        {"the tail of a lane", {3, 1, 2, 4}, {tail(0)}, 0},
        {"the tail of the lane with the most load", {3, 1, 2, 4}, {tail(3)}, 3},
        {"an earlier request of a lane", {3, 1, 2, 4}, {before_tail(0)}, 1},
        {"an earlier request of one lane, the tail of another", {3, 1, 2, 4}, {before_tail(1), tail(3)}, 3},
        {"two tails", {3, 1, 2, 4}, {tail(3), tail(0)}, 0},
        {"all tails", {3, 1, 2, 4}, {tail(0), tail(1), tail(2), tail(3)}, 1},
        {"a tail that has completed", {3, 1, 0, 4}, {tail(1), tail(2)}, 1},
        {"only a tail that has completed", {0, 1, 2, 4}, {tail(0)}, 0},
        {"the tail of a lane outside the group", {3, 1, 2, 4}, {{9, 100}}, 1},
        {"a lane outside the group, and a tail", {3, 1, 2, 4}, {{9, 100}, tail(2)}, 2},
        {"an idle lane", {3, 1, 0, 4}, {before_tail(0)}, 2},
    };
    for (const auto& c : all) {
        CAPTURE(c.name);
        CHECK(choose_chained(lanes_with(c.loads), c.waits) == c.expected);
    }
}

TEST_CASE("lanes that do not exist yet are idle lanes without a tail")
{
    // A frontier has no point {0, 0}, but ticket 0 of lane 0 is also what a missing lane has.
    const std::array<chain_lane, 3> none{};
    CHECK(choose_chained(none, {{0, 0}}) == 0);
    const std::vector<chain_lane> one{{{0, 5}, 1}, {}, {}};
    CHECK(choose_chained(one, {}) == 1);
    CHECK(choose_chained(one, {{0, 5}}) == 0);
}

TEST_CASE("of lanes with the same load the first is used")
{
    for (std::size_t count = 1; count <= 8; ++count)
        CHECK(choose_chained(lanes_with(std::vector<std::size_t>(count, 0)), {}) == 0);
    CHECK(choose_chained(lanes_with({2, 1, 1, 1}), {}) == 1);
    CHECK(choose_chained(lanes_with({1, 2, 2, 1}), {tail(1), tail(2)}) == 1);
}

// Every combination of loads from 0 to 2 and of waits (none, for the tail, for an earlier request) on four lanes.
TEST_CASE("the selected lane is the best one, for every state of four lanes")
{
    constexpr std::size_t count = 4;
    constexpr int states = 9;
    int total = 1;
    for (std::size_t i = 0; i < count; ++i)
        total *= states;
    for (int n = 0; n < total; ++n) {
        std::vector<std::size_t> loads;
        frontier waits;
        std::vector<std::size_t> followed;
        int rest = n;
        for (std::size_t i = 0; i < count; ++i, rest /= states) {
            const int state = rest % states;
            loads.push_back(static_cast<std::size_t>(state % 3));
            if (state / 3 == 1)
                waits.push_back(tail(i));
            if (state / 3 == 2)
                waits.push_back(before_tail(i));
            if (state / 3 == 1 && loads.back() != 0)
                followed.push_back(i);
        }
        const auto chosen = choose_chained(lanes_with(loads), waits);
        REQUIRE(chosen < count);
        std::size_t least = ~std::size_t(0);
        for (std::size_t i = 0; i < count; ++i)
            if (followed.empty() || std::ranges::find(followed, i) != followed.end())
                least = std::min(least, loads[i]);
        CAPTURE(n);
        CHECK(loads[chosen] == least);
        if (!followed.empty())
            CHECK(std::ranges::find(followed, chosen) != followed.end());
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_context_choose_chained
