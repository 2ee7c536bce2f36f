#include "plan_list_fixture.hpp"

namespace test_device_plan_list {

using namespace test::plan_lists;

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

TEST_CASE_FIXTURE(fixture, "one more instance of a plan is an extension, but not while another plan can be unloaded")
{
    CHECK_FALSE(plans.next_is_extension());
    const auto a = add(make_plan(1), {.instances = 3, .initial = 3});
    const auto b = add(make_plan(2));
    // The first instances, of both plans, are none.
    while (b->instances.empty()) {
        CHECK_FALSE(plans.next_is_extension());
        REQUIRE(context.step());
    }
    CHECK(a->instances.size() == 1);
    CHECK(plans.next_is_extension());
    REQUIRE(context.step());
    // An extension has begun.
    CHECK(plans.next_is_extension());
    CHECK_FALSE(plans.unloads_soon());
    b->closing = true;
    while (!b->gone) {
        CHECK(plans.unloads_soon());
        CHECK_FALSE(plans.next_is_extension());
        REQUIRE(context.step());
    }
    CHECK(a->instances.size() == 2);
    CHECK_FALSE(plans.unloads_soon());
    CHECK(plans.next_is_extension());
    context.run();
    CHECK_FALSE(plans.next_is_extension());
    CHECK(a->instances.size() == 3);
    // While a plan gets its first instance, unloads wait.
    const auto c = add(make_plan(3));
    REQUIRE(context.step());
    a->closing = true;
    while (c->instances.empty()) {
        CHECK_FALSE(plans.unloads_soon());
        CHECK_FALSE(plans.next_is_extension());
        REQUIRE(context.step());
    }
    CHECK(plans.unloads_soon());
    CHECK_FALSE(plans.next_is_extension());
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

TEST_CASE_FIXTURE(fixture, "a context that dies is reported with the plan whose instance was being loaded")
{
    const auto p = add(make_plan());
    const auto now = load_suspicion::time_point(std::chrono::hours(1));
    p->loads.lost(now);
    // The memory of the constant and of the instance, and the constant.
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(plans.loads_suspect(now));
        CHECK(context.step());
    }
    CHECK(plans.loads_suspect(now));
    CHECK(context.step(errc::context_lost));
    CHECK(context.last.lost == p.get());
    CHECK_FALSE(plans.loads_suspect(now));
    (void)plans.forget_context();
    context.live.clear();
    CHECK(context.step(errc::context_lost));
    CHECK(context.last.lost == nullptr);
    (void)plans.forget_context();
    (void)p->loads.lost_alone(now);
    CHECK(plans.has_next());
    (void)p->loads.lost_alone(now);
    CHECK_FALSE(plans.has_next());
    CHECK(plans.take(*p) == p);
    CHECK(p->gone);
    CHECK(plans.empty());
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

} // namespace test_device_plan_list
