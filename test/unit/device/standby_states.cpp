#include "standby_fixture.hpp"

namespace test_device_standby_states {

using namespace test::standby;

// Plans with durable states on a standby.
namespace {

constexpr std::uint64_t count = 4;

/// A constant, a durable state, and an ordinary one.
plan_description mixed_plan(suspect_rule rule = suspect_rule::fail)
{
    plan_builder b("p");
    const auto w = b.constant<float>(std::vector<float>(count, 1));
    b.add(memory::copy<float>{w, b.state<float>(std::vector<float>(count, 2), durable{rule})});
    b.add(memory::copy<float>{w, b.state<float>(std::vector<float>(count, 3))});
    return b.finish().value();
}

} // namespace

TEST_SUITE_BEGIN("standby_plans with durable states");

TEST_CASE_FIXTURE(fixture, "a standby has everything but the durable state")
{
    const auto p = add(mixed_plan());
    run();
    CHECK(current.loaded.begin()->second == 1);
    const auto memory = p->durable_states[0]->memory;
    run_standby();
    CHECK(standby.complete(plans));
    CHECK(standby.loaded() == 1);
    CHECK(ahead.times("memory.import") == 0);
    CHECK(ahead.durable.empty());
    // The constant, a stand-in, the ordinary state, the instance.
    CHECK(ahead.live.size() == 4);
    CHECK(p->durable_states[0]->memory == memory);

    CHECK(take_over().empty());
    CHECK(p->running() == 0);
    current.names.clear();
    run();
    // The instance is loaded again in its memory; the stand-in is the spare state of this load.
    CHECK(current.names == std::vector<std::string>{"plan.unload", "memory.import", "memory.allocate", "plan.load"});
    REQUIRE(p->instances.size() == 1);
    CHECK_FALSE(p->prepared);
    CHECK(current.loaded.size() == 1);
    CHECK(current.loaded.begin()->second == 1);
    CHECK(current.live.size() == 4);
    p->closing = true;
    run();
    CHECK(current.live.empty());
}

TEST_CASE("the rule of a suspect state applies before the instance can be used")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
        CAPTURE(to_string(rule));
        fixture f;
        const auto p = f.add(mixed_plan(rule));
        f.run();
        f.run_standby();
        CHECK(f.take_over(loss_cause::fault).empty());
        CHECK(p->durable_states[0]->trust.suspect());
        const auto before = f.current.times("memory.write<u8>");
        f.run();
        CHECK(f.current.times("memory.write<u8>") - before == (rule == suspect_rule::reset ? 1 : 0));
        CHECK(p->instances.size() == 1);
        CHECK(p->first_refused().has_value() == (rule == suspect_rule::fail));
        CHECK(p->durable_states[0]->trust.suspect() == (rule == suspect_rule::fail));
    }
}

TEST_CASE_FIXTURE(fixture, "the loss of a standby says nothing about the state")
{
    const auto p = add(mixed_plan());
    run();
    run_standby();
    standby.forget_context();
    ahead = context_memory(3);
    CHECK_FALSE(p->durable_states[0]->trust.suspect());
    run_standby();
    CHECK(standby.loaded() == 1);
}

TEST_CASE("the device can take over at any time, and the plan ends with its state")
{
    for (const bool in_flight : {false, true})
        for (int steps = 0;; ++steps) {
            CAPTURE(in_flight);
            CAPTURE(steps);
            fixture f;
            const auto p = f.add(mixed_plan());
            const auto q = f.add(mixed_plan());
            f.run();
            bool more = true;
            for (int n = 0; n < steps && more; ++n)
                more = f.standby_step();
            load_part* const part = in_flight ? f.standby.next(f.plans, sharing::yes) : nullptr;
            if (part)
                f.ahead.execute(*part);
            CHECK(f.take_over().empty());
            if (part)
                f.finish(*part);
            f.run();
            for (const auto& each : {p, q}) {
                CHECK(each->instances.size() == 1);
                CHECK(each->pool.free() == 1);
            }
            CHECK(f.current.loaded.size() == 2);
            for (const auto& [instance, states] : f.current.loaded)
                CHECK(states == 1);
            // The common constant, and two states and an instance of each.
            CHECK(f.current.live.size() == 7);
            p->closing = q->closing = true;
            f.run();
            CHECK(f.current.live.empty());
            if (!more)
                break;
        }
}

TEST_CASE("whatever happens at any step after the take-over, nothing is left, and the next context has the state")
{
    for (const auto what : {errc::context_lost, errc::out_of_memory})
        for (int steps = 0;; ++steps) {
            CAPTURE(int(what));
            CAPTURE(steps);
            fixture f;
            const auto p = f.add(mixed_plan());
            f.run();
            const auto memory = p->durable_states[0]->memory;
            f.run_standby();
            (void)f.take_over();
            bool more = true;
            for (int n = 0; n < steps && more; ++n)
                more = f.step();
            if (!more || !f.step(what))
                break;
            const bool was_unload = f.last.unload_error.failed();
            CHECK(was_unload == (steps == 0));
            if (what == errc::out_of_memory && !was_unload) {
                CHECK(p->broken);
                CHECK(f.current.live.empty());
                CHECK(f.current.durable.empty());
            }
            (void)f.take_over();
            f.run();
            CHECK(p->instances.size() == 1);
            CHECK(p->durable_states[0]->memory == memory);
            CHECK(f.current.loaded.begin()->second == 1);
        }
}

TEST_CASE("a plan that leaves while its copy exists leaves nothing, whenever the device takes over")
{
    for (const bool gone : {false, true})
        for (int before = 0;; ++before) {
            CAPTURE(gone);
            CAPTURE(before);
            fixture f;
            const auto kept = f.add(mixed_plan());
            const auto p = f.add(mixed_plan());
            f.run();
            bool more = true;
            for (int n = 0; n < before && more; ++n)
                more = f.standby_step();
            p->closing = true;
            if (gone)
                f.run();
            CHECK(p->gone == gone);
            load_part* part = f.standby.next(f.plans, sharing::yes);
            if (part)
                f.ahead.execute(*part);
            (void)f.take_over();
            if (part)
                f.finish(*part);
            f.run();
            CHECK(p->gone);
            CHECK(f.plans.all() == std::vector{kept});
            CHECK(f.current.loaded.size() == 1);
            CHECK(f.current.live.size() == 4);
            if (!more)
                break;
        }
}

TEST_CASE_FIXTURE(fixture, "a copy that leaves before a take-over is unloaded with its stand-in")
{
    const auto p = add(mixed_plan());
    run();
    run_standby();
    p->closing = true;
    run_standby();
    CHECK(ahead.loaded.empty());
    CHECK(ahead.live.empty());
    CHECK(standby.loaded() == 0);
}

TEST_CASE("plans of a set have one durable state after a take-over, and none before")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        plan_set_builder set("s");
        const auto common = set.state<float>(std::vector<float>(count, 1), durable{}, "common");
        const auto other = set.state<float>(std::vector<float>(count, 2), "other");
        for (const char* name : {"a", "b"})
            set.plan(name).add(memory::fill<float>{.dst = common}).add(memory::fill<float>{.dst = other});
        const auto description = set.finish().value();
        const auto& data = *plan_set_access::data(description);
        const auto states = std::make_shared<common_states>(data.users);
        std::vector<std::shared_ptr<loaded_plan>> all;
        for (const set_plan& p : data.plans) {
            all.push_back(std::make_shared<loaded_plan>(p, plan_options{.instances = 1}, states));
            f.plans.add(all.back());
        }
        f.run();
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.standby_step();
        if (!more) {
            // A stand-in and an instance of each, and the other state.
            CHECK(f.ahead.live.size() == 5);
            CHECK(f.ahead.durable.empty());
        }
        (void)f.take_over();
        f.run();
        CHECK(f.current.times("memory.import") == 1);
        CHECK(f.current.live.size() == 4);
        CHECK(f.current.loaded.size() == 2);
        CHECK(all[0]->states == all[1]->states);
        for (const auto& p : all)
            p->closing = true;
        f.run();
        CHECK(f.current.live.empty());
        if (!more)
            break;
    }
}

TEST_SUITE_END();

} // namespace test_device_standby_states
