#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

namespace test_cuda_run_times {

// The times of runs that the GPU measures.
namespace {

using namespace coaccel;
using test::context_driver;
using test::cuda_world;
using test::plan_run;
using test::test_instance;

enum class kind : bool { one_by_one, recorded };

detail::plan_data summing_plan(kind k)
{
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto y = m.floats(slot_kind::output, 4);
    m.add(memory::copy<float>{x, y});
    // Its reply keeps the plan from being a graph.
    if (k == kind::one_by_one)
        m.add(blas::dot<float>{x, x, 4});
    return m.finish();
}

/// Runs the instance; returns the time, or zero if it was not measured.
std::uint64_t measured_run(context_driver& d, const test_instance& i, error_code expected = {})
{
    plan_run r(i, {{1, 2, 3, 4}});
    detail::plan_ran ran;
    r.request->ops[0].reply = &ran;
    CHECK(d.outcome_of(*r.request) == expected);
    if (!expected)
        CHECK(r.outputs[0] == std::vector<float>{1, 2, 3, 4});
    return ran.nanoseconds;
}

TEST_SUITE_BEGIN("run_timer");

TEST_CASE("one of so many runs is measured, as a graph and op by op")
{
    for (const auto k : {kind::recorded, kind::one_by_one}) {
        cuda_world world;
        world.options.timed_runs = 3;
        const auto plan = summing_plan(k);
        context_driver d(world);
        test_instance first(d, plan, 1, 1), second(d, plan, 2, 1);
        REQUIRE_FALSE(first.load());
        REQUIRE_FALSE(second.load());
        CHECK(first.recorded == (k == kind::recorded));
        for (int n = 0; n < 7; ++n)
            CHECK((measured_run(d, first) > 0) == (n % 3 == 0));
        // Instances are counted apart.
        CHECK(measured_run(d, second) > 0);
        CHECK_FALSE(first.unload());
        CHECK_FALSE(second.unload());
    }
}

TEST_CASE("nothing is measured unless the option is set")
{
    cuda_world world;
    const auto plan = summing_plan(kind::recorded);
    {
        context_driver d(world);
        test_instance i(d, plan, 1, 1);
        REQUIRE_FALSE(i.load());
        CHECK(measured_run(d, i) == 0);
    }
    world.options.timed_runs = 1;
    context_driver d(world);
    test_instance i(d, plan, 1, 1);
    REQUIRE_FALSE(i.load());
    plan_run without_reply(i, {{1, 2, 3, 4}});
    CHECK_FALSE(d.outcome_of(*without_reply.request));
    CHECK(measured_run(d, i) > 0);
}

TEST_CASE("a driver that refuses the events leaves runs unmeasured")
{
    for (const auto* function : {"cuEventCreate", "cuEventElapsedTime"}) {
        CAPTURE(function);
        cuda_world world;
        world.options.timed_runs = 1;
        const auto plan = summing_plan(kind::recorded);
        context_driver d(world);
        test_instance i(d, plan, 1, 1);
        REQUIRE_FALSE(i.load());
        // So that the events of the lane exist.
        CHECK(measured_run(d, i) > 0);
        test_instance other(d, plan, 2, 1);
        REQUIRE_FALSE(other.load());
        world.driver.fail(function, CUDA_ERROR_OUT_OF_MEMORY, 1);
        CHECK(measured_run(d, other) == 0);
        CHECK(measured_run(d, other) > 0);
    }
}

TEST_CASE("a run that ends the context is not measured")
{
    cuda_world world;
    world.options.timed_runs = 1;
    const auto plan = summing_plan(kind::recorded);
    context_driver d(world);
    test_instance i(d, plan, 1, 1);
    REQUIRE_FALSE(i.load());
    world.poison();
    CHECK(measured_run(d, i, errc::context_lost) == 0);
}

TEST_SUITE_END();

} // namespace
} // namespace test_cuda_run_times
