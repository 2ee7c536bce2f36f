#include "context/lanes/op_states.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

namespace test_context_op_states {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

struct fixture {
    fixture()
    {
        first = clock.add_lane();
        second = clock.add_lane();
    }

    frontier waits(std::uint64_t id)
    {
        frontier f;
        states.collect(id, f);
        return f;
    }

    lane_clock clock;
    op_states states;
    lane_id first, second;
};

} // namespace

TEST_SUITE_BEGIN("op_states");

TEST_CASE("ops of one generator have the same state, other ops have none")
{
    const auto g = rand::make_generator({});
    const rand::uniform<float> uniform{.dst = {}, .from = g};
    const rand::poisson poisson{.dst = {}, .from = g};
    const rand::poisson other{.dst = {}, .from = rand::make_generator({})};
    const memory::fill<float> fill{};
    const auto id_of = [](const auto& op) {
        return op_states::id_of({.info = &info_of<std::remove_cvref_t<decltype(op)>>(), .op = &op});
    };
    CHECK(id_of(uniform) != 0);
    CHECK(id_of(uniform) == id_of(poisson));
    CHECK(id_of(uniform) != id_of(other));
    CHECK(id_of(fill) == 0);
}

TEST_CASE_FIXTURE(fixture, "an op waits for the last op with the same state")
{
    CHECK(waits(7).empty());
    states.note(7, {first, 1}, clock);
    states.note(9, {second, 1}, clock);
    CHECK(waits(7) == frontier{{first, 1}});
    states.note(7, {second, 2}, clock);
    // The wait for it includes the wait for the op before.
    CHECK(waits(7) == frontier{{second, 2}});
    CHECK(waits(9) == frontier{{second, 1}});
    CHECK(waits(8).empty());
}

TEST_CASE_FIXTURE(fixture, "only states whose ops have ended are forgotten")
{
    for (std::uint64_t i = 1; i <= op_states::most_states; ++i)
        states.note(i, {first, i}, clock);
    states.note(1000, {second, 1}, clock);
    CHECK(states.size() == op_states::most_states + 1);
    CHECK_FALSE(waits(1).empty());
    clock.pass({first, op_states::most_states});
    states.note(1001, {second, 2}, clock);
    CHECK(states.size() <= op_states::most_states);
    CHECK(waits(1000) == frontier{{second, 1}});
}

TEST_SUITE_END();

} // namespace test_context_op_states
