#include "standby_fixture.hpp"

#include <algorithm>

namespace test_device_standby_plans {

using namespace test::standby;

namespace {

plan_description constant_plan(float value, bool with_state = false)
{
    plan_builder b("p");
    const auto w = b.constant<float>(std::vector<float>(8, value));
    const auto y = b.output<float>(8);
    b.add(memory::copy<float>{w, y});
    if (with_state)
        b.add(memory::copy<float>{w, b.state<float>(8)});
    return b.finish().value();
}

} // namespace

TEST_SUITE_BEGIN("standby_plans");

TEST_CASE_FIXTURE(fixture, "one instance of each plan is made")
{
    const auto a = add(constant_plan(1), {.instances = 4, .initial = 3});
    const auto b = add(constant_plan(1, true));
    run();
    run_standby();
    CHECK(standby.loaded() == 2);
    CHECK(standby.complete(plans));
    CHECK(ahead.loaded.size() == 2);
    // The common constant, a state, and the memory of two instances.
    CHECK(ahead.live.size() == 4);
    CHECK(ahead.uploads() == 1);
    // The device has its own.
    CHECK(a->instances.size() == 3);
    CHECK(current.live.size() == 6);
}

TEST_CASE_FIXTURE(fixture, "a plan whose loading ended standbys is left out")
{
    const auto a = add(constant_plan(1));
    const auto b = add(constant_plan(2));
    run();
    const auto now = load_suspicion::time_point(std::chrono::hours(1));
    for (int i = 0; i < load_suspicion::most_losses; ++i) {
        while (ahead.times("plan.load") == 0 && last_of_standby.lost == nullptr) {
            const bool loads = !ahead.names.empty() && ahead.names.back() == "memory.write<u8>";
            CHECK(standby_step(loads ? make_error_code(errc::context_lost) : error_code()));
        }
        CHECK(last_of_standby.lost == a.get());
        a->loads.lost_standby(now);
        standby.forget_context();
        last_of_standby.lost = nullptr;
        ahead = context_memory(2);
    }
    run_standby();
    CHECK(standby.loaded() == 1);
    CHECK(standby.complete(plans));
    a->loads.loaded();
    run_standby();
    CHECK(standby.loaded() == 2);
}

TEST_CASE_FIXTURE(fixture, "plans that are loaded or unloaded later are followed")
{
    const auto a = add(constant_plan(1));
    const auto b = add(constant_plan(2));
    run();
    run_standby();
    const auto c = add(constant_plan(3));
    CHECK_FALSE(standby.complete(plans));
    run();
    run_standby();
    CHECK(standby.loaded() == 3);
    a->closing = true;
    run_standby();
    CHECK(standby.loaded() == 2);
    CHECK(ahead.live.size() == 4);
    CHECK(ahead.loaded.size() == 2);
    run();
    CHECK(a->gone);
    b->closing = c->closing = true;
    run();
    run_standby();
    CHECK(standby.loaded() == 0);
    CHECK(ahead.live.empty());
    CHECK(ahead.loaded.empty());
}

TEST_CASE_FIXTURE(fixture, "a plan that a call waits for is loaded by the device first")
{
    const auto p = add(constant_plan(1));
    // Only compared with null.
    alignas(load_call) std::byte call[sizeof(load_call)];
    p->call = reinterpret_cast<load_call*>(&call);
    CHECK_FALSE(standby_step());
    CHECK(standby.complete(plans));
    p->call = nullptr;
    run_standby();
    CHECK(standby.loaded() == 1);
}

TEST_CASE("whichever request of a load fails, nothing is left, and the other plans are loaded")
{
    for (int failing = 0;; ++failing) {
        CAPTURE(failing);
        fixture f;
        const auto a = f.add(constant_plan(1, true));
        f.run();
        bool more = true;
        for (int n = 0; n < failing && more; ++n)
            more = f.standby_step();
        if (!more || !f.standby_step(errc::out_of_memory))
            break;
        CHECK(f.last_of_standby.failed == a.get());
        CHECK(f.last_of_standby.error == errc::out_of_memory);
        CHECK(f.ahead.live.empty());
        CHECK_FALSE(a->broken);
        const auto b = f.add(constant_plan(2));
        f.run_standby();
        CHECK(f.standby.loaded() == 1);
        CHECK(f.standby.complete(f.plans));
        // The plan is loaded after the take-over, as without a standby.
        const auto usable = f.take_over();
        CHECK(usable == std::vector{b.get()});
        f.run();
        CHECK(a->instances.size() == 1);
        CHECK(b->instances.size() == 1);
        CHECK(f.current.loaded.size() == 2);
    }
}

TEST_CASE_FIXTURE(fixture, "a plan that could not be loaded is tried again when another has left")
{
    const auto a = add(constant_plan(1));
    const auto b = add(constant_plan(2));
    while (standby.loaded() < 1)
        REQUIRE(standby_step());
    REQUIRE(standby_step(errc::out_of_memory));
    CHECK_FALSE(standby_step());
    a->closing = true;
    run_standby();
    CHECK(standby.loaded() == 1);
    CHECK(ahead.live.size() == 2);
    b->closing = true;
    run_standby();
    CHECK(ahead.live.empty());
}

TEST_CASE("the device can take over at any time, and loads only what is missing")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        const auto a = f.add(constant_plan(1), {.instances = 2, .initial = 2});
        const auto b = f.add(constant_plan(1, true));
        const auto c = f.add(constant_plan(2));
        f.run();
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.standby_step();
        const std::size_t loaded = f.standby.loaded();
        const auto usable = f.take_over();
        CHECK(usable.size() == loaded);
        for (const loaded_plan* p : usable)
            CHECK(p->pool.free() == 1);
        f.run();
        CHECK(a->instances.size() == 2);
        CHECK(b->instances.size() == 1);
        CHECK(c->instances.size() == 1);
        // Two constants, a state, four instances; nothing was uploaded twice.
        CHECK(f.current.live.size() == 7);
        CHECK(f.current.uploads() == 2);
        CHECK(f.current.loaded.size() == 4);
        CHECK(f.standby.loaded() == 0);
        // The next standby begins from nothing.
        f.run_standby();
        CHECK(f.ahead.loaded.size() == 3);
        a->closing = b->closing = c->closing = true;
        f.run();
        CHECK(f.current.live.empty());
        if (!more)
            break;
    }
}

TEST_CASE("a request that is on its way when the device takes over belongs to the device")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        const auto a = f.add(constant_plan(1, true));
        f.run();
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.standby_step();
        load_part* part = more ? f.standby.next(f.plans) : nullptr;
        if (!part)
            break;
        f.ahead.execute(*part);
        f.take_over();
        CHECK_FALSE(part->standby);
        CHECK_FALSE(f.plans.has_next());
        f.finish(*part);
        f.run();
        CHECK(a->instances.size() == 1);
        CHECK(a->pool.free() == 1);
        // The constant, the state, the instance.
        CHECK(f.current.live.size() == 3);
    }
}

TEST_CASE("a plan that leaves while its copy exists leaves nothing, whenever the device takes over")
{
    for (const bool gone : {false, true})
        for (int before = 0;; ++before) {
            bool more = true;
            for (int after = 0; after < 3; ++after) {
                CAPTURE(gone);
                CAPTURE(before);
                CAPTURE(after);
                fixture f;
                const auto kept = f.add(constant_plan(1));
                const auto p = f.add(constant_plan(1, true));
                f.run();
                for (int n = 0; n < before && more; ++n)
                    more = f.standby_step();
                p->closing = true;
                if (gone)
                    f.run();
                CHECK(p->gone == gone);
                for (int n = 0; n < after; ++n)
                    (void)f.standby_step();
                load_part* part = f.standby.next(f.plans);
                if (part)
                    f.ahead.execute(*part);
                (void)f.take_over();
                if (part)
                    f.finish(*part);
                f.run();
                CHECK(p->gone);
                CHECK(f.plans.all() == std::vector{kept});
                CHECK(f.current.loaded.size() == 1);
                CHECK(f.current.live.size() == 2);
            }
            if (!more)
                break;
        }
}

/// Plans of a set: two with a common state, and the second with a state of its own too.
struct set_fixture : fixture {
    set_fixture()
    {
        plan_set_builder set("s");
        const auto common = set.state<float>(std::vector<float>(8, 1), "common");
        const auto own = set.state<float>(8, "own");
        set.plan("a").add(memory::fill<float>{.dst = common});
        set.plan("b").add(memory::fill<float>{.dst = common}).add(memory::fill<float>{.dst = own});
        const auto description = set.finish().value();
        const auto& data = *plan_set_access::data(description);
        const auto states = std::make_shared<common_states>(data.users);
        for (const set_plan& p : data.plans) {
            all.push_back(std::make_shared<loaded_plan>(p, plan_options{.instances = 2}, states));
            plans.add(all.back());
        }
    }

    std::vector<std::shared_ptr<loaded_plan>> all;
};

TEST_CASE(
    "plans with a common state have it once on the standby, with its initial content, whenever the device takes over")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        set_fixture f;
        f.run();
        const any_ref before = f.all[0]->states[0];
        const std::uint64_t chain = f.all[0]->instances[0].chain;
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.standby_step();
        // What the device uses does not change meanwhile.
        CHECK(f.all[0]->states[0] == before);
        CHECK(f.all[1]->states[0] == before);
        load_part* part = f.standby.next(f.plans);
        if (part)
            f.ahead.execute(*part);
        const std::size_t loaded = f.standby.loaded();
        CHECK(f.take_over().size() == loaded);
        if (part)
            f.finish(*part);
        f.run();
        CHECK(f.all[0]->states[0] == f.all[1]->states[0]);
        CHECK(f.all[0]->states[0].generation != before.generation);
        // Two states and two instances, and each state was filled once.
        CHECK(f.current.live.size() == 4);
        CHECK(f.current.uploads() == 1);
        CHECK(std::ranges::count(f.current.names, "memory.fill<u8>") == 1);
        for (const auto& p : f.all) {
            REQUIRE(p->instances.size() == 1);
            CHECK(p->instances[0].chain == chain);
        }
        // Another standby begins from nothing.
        f.run_standby();
        CHECK(f.ahead.live.size() == 4);
        for (const auto& p : f.all)
            p->closing = true;
        f.run();
        f.run_standby();
        CHECK(f.current.live.empty());
        CHECK(f.ahead.live.empty());
        if (!more)
            break;
    }
}

TEST_CASE("on the standby, a common state is released with the last plan that uses it")
{
    for (const std::size_t first : {0, 1}) {
        set_fixture f;
        f.run();
        f.run_standby();
        CHECK(f.standby.loaded() == 2);
        f.all[first]->closing = true;
        f.run_standby();
        // The second plan has another state.
        CHECK(f.ahead.live.size() == (first == 0 ? 3 : 2));
        f.all[1 - first]->closing = true;
        f.run_standby();
        CHECK(f.ahead.live.empty());
        f.run();
        CHECK(f.current.live.empty());
    }
}

TEST_CASE("plans of a set that leave while their copies exist leave nothing, whenever the device takes over")
{
    for (const bool gone : {false, true})
        for (const std::size_t leaving : {0, 1, 2})
            for (int steps = 0;; ++steps) {
                CAPTURE(gone);
                CAPTURE(leaving);
                CAPTURE(steps);
                set_fixture f;
                f.run();
                f.run_standby();
                for (std::size_t i = 0; i < 2; ++i)
                    f.all[i]->closing = leaving == i || leaving == 2;
                if (gone)
                    f.run();
                bool more = true;
                for (int n = 0; n < steps && more; ++n)
                    more = f.standby_step();
                load_part* part = f.standby.next(f.plans);
                if (part)
                    f.ahead.execute(*part);
                (void)f.take_over();
                if (part)
                    f.finish(*part);
                f.run();
                // Of "a": the common state and an instance; of "b" also a state of its own.
                CHECK(f.current.live.size() == (leaving == 0 ? 3 : leaving == 1 ? 2 : 0));
                CHECK(f.current.loaded.size() == (leaving == 2 ? 0 : 1));
                for (const auto& p : f.all)
                    p->closing = true;
                f.run();
                CHECK(f.current.live.empty());
                CHECK(f.plans.empty());
                if (!more)
                    break;
            }
}

TEST_CASE("whichever request of the load of a set on the standby fails, the other plan is loaded, and the rest later")
{
    for (int failing = 0;; ++failing) {
        CAPTURE(failing);
        set_fixture f;
        f.run();
        bool more = true;
        for (int n = 0; n < failing && more; ++n)
            more = f.standby_step();
        if (!more || !f.standby_step(errc::out_of_memory))
            break;
        CHECK(f.last_of_standby.failed);
        f.run_standby();
        CHECK(f.standby.loaded() == 1);
        CHECK(f.take_over().size() == 1);
        f.run();
        CHECK(f.all[0]->states[0] == f.all[1]->states[0]);
        CHECK(f.current.live.size() == 4);
    }
}

TEST_CASE("the common states of a lost standby are forgotten")
{
    set_fixture f;
    f.run();
    f.run_standby();
    f.standby.forget_context();
    f.ahead.live.clear();
    f.ahead.loaded.clear();
    // Nothing refers to the memory of the lost one.
    f.run_standby();
    CHECK(f.ahead.live.size() == 4);
}

TEST_CASE_FIXTURE(fixture, "a copy that cannot be unloaded counts as unloaded, and the error is passed on")
{
    const auto p = add(constant_plan(1));
    run();
    run_standby();
    p->closing = true;
    REQUIRE(standby_step(errc::backend_error));
    CHECK(last_of_standby.unload_error == errc::backend_error);
    CHECK(ahead.live.empty());
    CHECK(standby.complete(plans));
}

TEST_CASE_FIXTURE(fixture, "a lost standby is forgotten, and the next one begins from nothing")
{
    const auto p = add(constant_plan(1));
    run();
    load_part* part = standby.next(plans);
    REQUIRE(part);
    standby.forget_context();
    CHECK_FALSE(standby.next(plans));
    const auto news = standby.finished(*part, errc::context_lost);
    CHECK_FALSE(news.failed);
    CHECK(news.unused.empty());
    run_standby();
    CHECK(standby.loaded() == 1);
    CHECK(p->instances.size() == 1);
}

TEST_CASE_FIXTURE(fixture, "a load that ends with the loss of the context is no failure")
{
    const auto p = add(constant_plan(1));
    run();
    REQUIRE(standby_step());
    load_part* part = standby.next(plans);
    REQUIRE(part);
    const auto news = standby.finished(*part, errc::context_lost);
    CHECK_FALSE(news.failed);
    CHECK(standby.loaded() == 0);
}

TEST_SUITE_END();

} // namespace test_device_standby_plans
