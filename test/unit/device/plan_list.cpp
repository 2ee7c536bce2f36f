#include "device/plan_list.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace test_device_plan_list {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

/// What the device and the context do with the requests of a plan_list, without either.
class fake_context {
public:
    explicit fake_context(plan_list& plans) : plans_(plans) {}

    /// Executes the next request; false: there is none.
    bool step(error_code ec = {})
    {
        load_part* part = plans_.next();
        if (!part)
            return false;
        const bound_op& o = part->ops.front();
        names.push_back(o.info->name);
        if (!ec && o.info->role == op_role::allocate) {
            any_ref made{.device = 1, .generation = 1, .slot = ++slots_, .size = o.as<allocate_op>().count};
            static_cast<allocation*>(o.reply)->ref = made;
            live.insert(made.slot);
        }
        if (!ec && o.info->id == plan_load_id) {
            const auto& head = o.as<plan_load_head>();
            loaded[head.instance] = head.chain;
            // All operands are live buffers.
            for (std::size_t i = 0; i < plan_load_operands(*head.plan).count; ++i)
                CHECK(live.contains(head.refs()[i].slot));
        }
        if (!ec && o.info->id == info_of<plan_unload_op>().id)
            loaded.erase(o.as<plan_unload_op>().instance);
        last = plans_.finished(*part, ec);
        for (const any_ref& r : last.unused)
            CHECK(live.erase(r.slot) == 1);
        if (last.extended)
            last.extended->pool.add(static_cast<std::uint32_t>(last.extended->instances.size() - 1));
        return true;
    }

    void run()
    {
        while (step()) {
        }
    }

    std::vector<std::string> names;
    std::set<std::uint32_t> live;
    /// The chains of the instances that exist.
    std::map<std::uint64_t, std::uint64_t> loaded;
    plan_list::news last;

private:
    plan_list& plans_;
    std::uint32_t slots_ = 0;
};

plan_description make_plan(float value = 1, bool with_state = false)
{
    plan_builder b("p");
    const auto w = b.constant<float>(std::vector<float>(8, value));
    const auto x = b.input<float>(8);
    const auto y = b.output<float>(8);
    const auto z = b.output<float>(8);
    b.add(memory::copy<float>{w, y});
    b.add(memory::copy<float>{x, z});
    if (with_state)
        b.add(memory::copy<float>{x, b.state<float>(8)});
    return b.finish().value();
}

struct fixture {
    std::shared_ptr<loaded_plan> add(const plan_description& d, plan_options how = {})
    {
        auto p = std::make_shared<loaded_plan>(d, how);
        plans.add(p);
        return p;
    }

    plan_list plans;
    fake_context context{plans};
};

TEST_SUITE_BEGIN("plan_list");

TEST_CASE_FIXTURE(fixture, "the first instance needs the constants, further instances only their memory")
{
    const auto p = add(make_plan(), {.instances = 3, .initial = 2});
    context.run();
    CHECK(context.names == std::vector<std::string>{"memory.allocate", "memory.allocate", "memory.write<u8>",
                                                    "plan.load", "memory.allocate", "plan.load"});
    CHECK(p->instances.size() == 2);
    CHECK(p->pool.free() == 2);
    CHECK(context.live.size() == 3);
    CHECK_FALSE(plans.has_next());
}

TEST_CASE_FIXTURE(fixture, "a state gets memory and zeros, and spare memory while it is loaded")
{
    const auto p = add(make_plan(1, true));
    context.run();
    CHECK(context.names == std::vector<std::string>{"memory.allocate", "memory.allocate", "memory.allocate",
                                                    "memory.allocate", "memory.write<u8>", "memory.fill<u8>",
                                                    "plan.load"});
    // The constant, the state, the memory of the instance.
    CHECK(context.live.size() == 3);
}

TEST_CASE_FIXTURE(fixture, "the instances of a plan are spread over chains, those of a plan with states are on one")
{
    const auto a = add(make_plan(1), {.instances = 8, .initial = 8});
    const auto b = add(make_plan(2, true), {.instances = 8, .initial = 8});
    context.run();
    std::set<std::uint64_t> of_a;
    std::set<std::uint64_t> of_b;
    for (const plan_instance& i : a->instances)
        of_a.insert(i.chain);
    for (const plan_instance& i : b->instances)
        of_b.insert(i.chain);
    CHECK(of_a == std::set<std::uint64_t>{1, 2, 3, 4});
    CHECK(of_b.size() == 1);
}

TEST_CASE_FIXTURE(fixture, "equal constants of several plans exist once")
{
    const auto a = add(make_plan(1));
    const auto b = add(make_plan(1));
    const auto c = add(make_plan(2));
    context.run();
    CHECK(context.live.size() == 5);
    CHECK(a->constants == b->constants);
    CHECK(a->constants != c->constants);
    a->closing = true;
    context.run();
    CHECK(context.live.size() == 4);
    CHECK(a->gone);
    b->closing = true;
    context.run();
    CHECK(context.live.size() == 2);
    CHECK(context.loaded.size() == 1);
}

/// Two equal constants and another one.
plan_description plan_with_equal_constants()
{
    plan_builder b;
    const auto y = b.output<float>(8);
    for (const float value : {1.0f, 2.0f, 1.0f}) {
        const auto c = b.constant<float>(std::vector<float>(8, value));
        b.add(memory::copy<float>{.src = c, .dst = y});
    }
    return b.finish().value();
}

TEST_CASE_FIXTURE(fixture, "equal constants of one plan exist once, and stay for other plans")
{
    const auto a = add(plan_with_equal_constants());
    const auto b = add(make_plan(1));
    context.run();
    // Two constants, and two instances; the other plan has one of the constants.
    CHECK(a->constants[0] == a->constants[2]);
    CHECK(context.live.size() == 4 + (b->constants[0] == a->constants[0] ? 0u : 1u));
    const auto kept = b->constants[0];
    a->closing = true;
    context.run();
    CHECK(context.live.contains(kept.slot));
    CHECK(context.live.size() == 2);
    b->closing = true;
    context.run();
    CHECK(context.live.empty());
}

TEST_CASE("whichever request of the load of equal constants fails, nothing is left")
{
    for (int failing = 0;; ++failing) {
        fixture f;
        const auto p = f.add(plan_with_equal_constants());
        bool more = true;
        for (int n = 0; n < failing && more; ++n)
            more = f.context.step();
        if (!more || !f.context.step(errc::out_of_memory))
            break;
        p->closing = true;
        f.context.run();
        CHECK(f.context.live.empty());
        CHECK(p->gone);
    }
}

TEST_CASE_FIXTURE(fixture, "an instance that cannot be unloaded counts as unloaded, and the error is passed on")
{
    const auto p = add(make_plan(), {.instances = 2, .initial = 2});
    context.run();
    p->closing = true;
    REQUIRE(context.step(errc::backend_error));
    CHECK(context.last.unload_error == errc::backend_error);
    CHECK_FALSE(context.last.error);
    CHECK_FALSE(p->gone);
    REQUIRE(context.step());
    CHECK_FALSE(context.last.unload_error);
    CHECK(context.last.left == p);
    CHECK(p->gone);
    CHECK(context.live.empty());
    CHECK_FALSE(plans.has_next());
}

TEST_CASE_FIXTURE(fixture, "a plan without instances has nothing to unload, so there is no error to pass on")
{
    const auto p = add(make_plan());
    REQUIRE(context.step(errc::out_of_memory));
    p->closing = true;
    // A backend does not know the instance.
    REQUIRE(context.step(errc::invalid_argument));
    CHECK_FALSE(context.last.unload_error);
    CHECK(context.last.left == p);
    CHECK_FALSE(context.last.error);
}

TEST_CASE("whichever request of a load fails, nothing is left")
{
    for (const bool with_state : {false, true})
        for (int failing = 0;; ++failing) {
            fixture f;
            const auto p = f.add(make_plan(1, with_state));
            bool more = true;
            for (int n = 0; n < failing && more; ++n)
                more = f.context.step();
            if (!more || !f.context.step(errc::out_of_memory))
                break;
            CHECK(f.context.last.broken == p.get());
            CHECK(f.context.last.error == errc::out_of_memory);
            CHECK(f.context.live.empty());
            CHECK(p->broken.get() == errc::out_of_memory);
            // It is not tried again in this context.
            CHECK_FALSE(f.plans.has_next());
            f.plans.forget_context();
            CHECK(f.plans.has_next());
            f.context.run();
            CHECK(p->instances.size() == 1);
        }
}

TEST_CASE_FIXTURE(fixture, "a plan without memory for another instance keeps those it has")
{
    const auto p = add(make_plan(), {.instances = 4, .initial = 4});
    while (p->instances.size() < 2)
        REQUIRE(context.step());
    REQUIRE(context.step(errc::out_of_memory));
    CHECK(context.last.limited == p.get());
    CHECK(context.live.size() == 3);
    CHECK_FALSE(plans.has_next());
    CHECK(p->instances.size() == 2);
}

TEST_CASE_FIXTURE(fixture, "instances are made when runs wait")
{
    struct plain final : request {
        void post() override {}
        void destroy() noexcept override {}
    };
    const auto p = add(make_plan(), {.instances = 3});
    context.run();
    CHECK(p->instances.size() == 1);
    plain waiting;
    p->pool.park(waiting);
    for (std::size_t made = 2; made <= 3; ++made) {
        // It waits only if there is no instance.
        CHECK_FALSE(plans.has_next());
        (void)p->pool.take();
        context.run();
        CHECK(p->instances.size() == made);
    }
    p->pool.unpark(waiting);
}

TEST_CASE_FIXTURE(fixture, "a plan that is used is not unloaded yet")
{
    const auto p = add(make_plan());
    context.run();
    (void)p->pool.take();
    p->closing = true;
    CHECK_FALSE(plans.has_next());
    p->pool.add(0);
    CHECK(plans.has_next());
    context.run();
    CHECK(p->gone);
    CHECK(context.live.empty());
    CHECK(context.loaded.empty());
    CHECK(plans.empty());
}

TEST_CASE_FIXTURE(fixture, "a plan that is unloaded while it is loaded leaves nothing")
{
    for (int steps = 0; steps < 5; ++steps) {
        const auto p = add(make_plan());
        for (int n = 0; n < steps; ++n)
            REQUIRE(context.step());
        p->closing = true;
        context.run();
        CHECK(p->gone);
        CHECK(context.live.empty());
        CHECK(context.loaded.empty());
    }
}

TEST_CASE_FIXTURE(fixture, "a load that ends early keeps the constants that it shares with another plan")
{
    const auto kept = add(make_plan());
    context.run();
    const auto live = context.live;
    for (int steps = 0; steps < 3; ++steps)
        for (const bool fails : {false, true}) {
            CAPTURE(steps);
            const auto p = add(make_plan());
            for (int n = 0; n < steps; ++n)
                context.step();
            if (fails && p->instances.empty())
                context.step(errc::out_of_memory);
            p->closing = true;
            context.run();
            CHECK(p->gone);
            CHECK(context.live == live);
        }
    kept->closing = true;
    context.run();
    CHECK(context.live.empty());
}

TEST_CASE_FIXTURE(fixture, "a plan that could not be loaded leaves the constants of others alone")
{
    const auto a = add(make_plan(1));
    context.run();
    const auto b = add(make_plan(1));
    REQUIRE(context.step(errc::out_of_memory));
    CHECK(b->broken);
    b->closing = true;
    context.run();
    CHECK(b->gone);
    // The constant and the instance of the first.
    CHECK(context.live.size() == 2);
    a->closing = true;
    context.run();
    CHECK(context.live.empty());
}

/// Plans of a set: two with a common state, and one with only a state of its own.
plan_set_description make_set()
{
    plan_set_builder set("s");
    const auto common = set.state<float>(8, "common");
    const auto own = set.state<float>(8, "own");
    set.plan("a").add(memory::fill<float>{.dst = common});
    set.plan("b").add(memory::fill<float>{.dst = common}).add(memory::fill<float>{.dst = own});
    set.plan("c").add(memory::fill<float>{.dst = set.state<float>(8)});
    return set.finish().value();
}

struct set_fixture : fixture {
    explicit set_fixture(plan_options how = {})
    {
        const auto description = make_set();
        const auto& data = *plan_set_access::data(description);
        common = std::make_shared<common_states>(data.users);
        for (const set_plan& p : data.plans) {
            all.push_back(std::make_shared<loaded_plan>(p, how, p.name == "c" ? nullptr : common));
            plans.add(all.back());
        }
    }

    std::shared_ptr<common_states> common;
    std::vector<std::shared_ptr<loaded_plan>> all;
};

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

TEST_CASE_FIXTURE(fixture, "after the loss of the context every plan first gets one instance")
{
    const auto a = add(make_plan(1), {.instances = 2, .initial = 2});
    const auto b = add(make_plan(2), {.instances = 2, .initial = 2});
    const auto closing = add(make_plan(3));
    context.run();
    closing->closing = true;
    const auto left = plans.forget_context();
    CHECK(left == std::vector{closing});
    CHECK(closing->gone);
    context.live.clear();
    a->pool.clear();
    b->pool.clear();
    std::vector<loaded_plan*> order;
    while (context.step())
        if (context.last.extended)
            order.push_back(context.last.extended);
    CHECK(order == std::vector{a.get(), b.get(), a.get(), b.get()});
}

TEST_CASE_FIXTURE(fixture, "a request that ends after its context was closed changes nothing")
{
    const auto p = add(make_plan());
    load_part* part = plans.next();
    REQUIRE(part);
    plans.forget_context();
    CHECK_FALSE(plans.has_next());
    const auto news = plans.finished(*part, errc::device_stopped);
    CHECK_FALSE(news.extended);
    CHECK_FALSE(news.broken);
    CHECK(plans.has_next());
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_plan_list
