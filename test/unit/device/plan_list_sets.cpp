#include "plan_list_fixture.hpp"

#include <algorithm>

namespace test_device_plan_list_sets {

using namespace test::plan_lists;

TEST_SUITE_BEGIN("plan_list: sets");

TEST_CASE("plans with a common state have one buffer for it and are on one chain")
{
    set_fixture f({.instances = 3, .initial = 3});
    f.context.run();
    // Three states and nine instances.
    CHECK(f.context.live.size() == 12);
    CHECK(f.all[0]->states[0] == f.all[1]->states[0]);
    CHECK(std::ranges::count(f.context.names, "memory.fill<u8>") == 3);
    std::set<std::uint64_t> chains;
    for (const auto& p : {f.all[0], f.all[1]})
        for (const plan_instance& i : p->instances)
            chains.insert(i.chain);
    CHECK(chains.size() == 1);
}

TEST_CASE("a common state is released with the last plan that uses it")
{
    for (const std::size_t first : {0, 1}) {
        set_fixture f;
        f.context.run();
        CHECK(f.context.live.size() == 6);
        f.all[first]->closing = true;
        f.context.run();
        // The second plan has another state.
        CHECK(f.context.live.size() == (first == 0 ? 5 : 4));
        f.all[1 - first]->closing = true;
        f.context.run();
        CHECK(f.context.live.size() == 2);
        f.all[2]->closing = true;
        f.context.run();
        CHECK(f.context.live.empty());
        CHECK(f.plans.empty());
    }
}

TEST_CASE("whichever request of the load of a set fails, the rest of it stays and can leave")
{
    for (int failing = 0;; ++failing) {
        set_fixture f;
        bool more = true;
        for (int n = 0; n < failing && more; ++n)
            more = f.context.step();
        if (!more || !f.context.step(errc::out_of_memory))
            break;
        const loaded_plan* broken = f.context.last.broken;
        REQUIRE(broken);
        f.context.run();
        for (const auto& p : f.all)
            CHECK(p->instances.size() == (p.get() == broken ? 0 : 1));
        for (const auto& p : f.all)
            p->closing = true;
        f.context.run();
        CHECK(f.context.live.empty());
        CHECK(f.plans.empty());
    }
}

TEST_CASE("in the next context the common state is made and filled once")
{
    set_fixture f;
    f.context.run();
    f.all[0]->closing = true;
    CHECK(f.plans.forget_context().size() == 1);
    f.context.live.clear();
    f.context.names.clear();
    for (const auto& p : f.all)
        p->pool.clear();
    CHECK(f.common->find(context_place::current, 0).device == 0);
    f.context.run();
    CHECK(std::ranges::count(f.context.names, "memory.fill<u8>") == 3);
    f.all[1]->closing = true;
    f.context.run();
    // The plan that left before the loss does not count any more.
    CHECK(f.context.live.size() == 2);
}

TEST_CASE("a common state that a plan has left behind is found by a plan that is loaded later")
{
    set_fixture f;
    while (f.all[0]->instances.empty())
        REQUIRE(f.context.step());
    const any_ref made = f.common->find(context_place::current, 0);
    CHECK(made.device != 0);
    f.all[0]->closing = true;
    while (!f.all[0]->gone)
        REQUIRE(f.context.step());
    CHECK(f.context.live.contains(made.slot));
    f.context.run();
    CHECK(f.all[1]->states[0] == made);
}

TEST_SUITE_END();

} // namespace test_device_plan_list_sets
