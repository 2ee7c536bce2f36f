#include "shared_constants_fixture.hpp"

namespace test_device_shared_constants_faults {

using namespace test::sharing_constants;

TEST_SUITE_BEGIN("shared_constants after faults");

TEST_CASE("whatever happens at any step of a load of packed constants, the plan runs, and nothing remains of it")
{
    for (const auto what : {errc::context_lost, errc::out_of_memory, errc::invalid_argument})
        for (const bool imports : {false, true})
            for (int steps = 0;; ++steps) {
                CAPTURE(int(what));
                CAPTURE(imports);
                CAPTURE(steps);
                fixture f;
                const auto p = f.add(packed_plan());
                if (imports) {
                    f.run();
                    f.lose();
                }
                bool more = true;
                for (int n = 0; n < steps && more; ++n)
                    more = f.step();
                const int before = f.current.about_sharing();
                if (!more || !f.step(what))
                    break;
                if (what == errc::context_lost)
                    f.lose();
                else if (f.current.about_sharing() == before)
                    continue;
                f.run();
                CHECK(f.current.loaded == 1);
                CHECK_FALSE(p->broken);
                // The next context has it too.
                f.lose();
                f.run();
                CHECK(f.current.loaded == 1);
                CHECK(f.plans.shared().bytes() == packed_shared);
                p->closing = true;
                f.run();
                CHECK(f.current.live.empty());
                CHECK(f.plans.shared().bytes() == 0);
            }
}

TEST_CASE("memory is given up when its plan leaves, whatever contexts there are")
{
    for (const int how : {0, 1, 2}) {
        CAPTURE(how);
        fixture f;
        const auto p = f.add(mixed_plan());
        f.run();
        f.run_standby();
        if (how == 0) {
            (void)f.plans.take_all();
        } else {
            p->closing = true;
            // All workers are dead.
            f.lose();
            if (how == 2)
                f.standby.forget_context();
        }
        CHECK(p->gone);
        CHECK(f.plans.shared().bytes() == 0);
    }
}

TEST_CASE("a worker that dies at any step of a load costs the constants that it had not passed on")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        const auto p = f.add(mixed_plan());
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.step();
        if (!more)
            break;
        const int passed_on = f.current.asked["memory.export"];
        // A request is on its way when the context is lost.
        load_part* part = f.plans.next(sharing::yes);
        if (part) {
            f.current.execute(*part, errc::context_lost);
            CHECK_FALSE(f.plans.finished(*part, errc::context_lost).unshared);
        }
        f.lose();
        f.run();
        CHECK(f.current.asked["memory.import"] == passed_on);
        CHECK(f.current.asked["memory.export"] == 2 - passed_on);
        CHECK(f.current.asked["memory.write<u8>"] == 3 - passed_on);
        CHECK(f.current.loaded == 1);
        CHECK(f.plans.shared().bytes() == mixed_shared);
        CHECK(f.unshared == 0);
        p->closing = true;
        f.run();
        CHECK(f.current.live.empty());
        CHECK(f.plans.shared().bytes() == 0);
    }
}

TEST_CASE("whichever request to share is refused, the context has the constant for itself")
{
    for (const bool imports : {false, true})
        for (int steps = 0;; ++steps) {
            CAPTURE(imports);
            CAPTURE(steps);
            fixture f;
            const auto p = f.add(mixed_plan());
            if (imports) {
                f.run();
                f.lose();
            }
            bool more = true;
            for (int n = 0; n < steps && more; ++n)
                more = f.step();
            const int before = f.current.about_sharing();
            if (!more || !f.step(errc::out_of_memory))
                break;
            const bool about_sharing = f.current.about_sharing() > before;
            CHECK(f.unshared == (about_sharing ? 1 : 0));
            if (!about_sharing)
                continue;
            f.run();
            CHECK(p->instances.size() == 1);
            CHECK(f.current.loaded == 1);
            CHECK_FALSE(p->broken);
            p->closing = true;
            f.run();
            CHECK(f.current.live.empty());
            CHECK(f.plans.shared().bytes() == 0);
        }
}

TEST_CASE_FIXTURE(fixture, "memory that a context cannot map because it is something else is made anew, once")
{
    const auto a = add(mixed_plan());
    const auto b = add(plan_of({{1, large}}));
    run();
    lose();
    while (current.asked["memory.import"] == 0)
        REQUIRE(step(errc::invalid_argument));
    CHECK(unshared == 1);
    CHECK(plans.shared().bytes() == mixed_shared - large * sizeof(float));
    run();
    CHECK(current.asked["memory.import"] == 2);
    CHECK(current.asked["memory.export"] == 1);
    CHECK(current.loaded == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    // The next context can map it.
    lose();
    run();
    CHECK(current.asked["memory.import"] == 2);
    CHECK(current.asked["memory.export"] == 0);
    CHECK(unshared == 1);
    a->closing = b->closing = true;
    run();
    CHECK(plans.shared().bytes() == 0);
    CHECK(current.live.empty());
}

TEST_CASE_FIXTURE(fixture, "after a failure of the hardware the constants are filled again, once")
{
    const auto p = add(mixed_plan());
    run();
    const std::weak_ptr<const shared_constant> old = p->kept_constants.front();
    lose();
    plans.distrust_shared();
    CHECK(old.expired());
    CHECK(plans.shared().bytes() == 0);
    run();
    CHECK(current.asked["memory.import"] == 0);
    CHECK(current.asked["memory.export"] == 2);
    CHECK(current.asked["memory.write<u8>"] == 3);
    CHECK(plans.shared().bytes() == mixed_shared);
    lose();
    run();
    CHECK(current.asked["memory.import"] == 2);
}

TEST_CASE_FIXTURE(fixture, "a standby that is lost with the hardware leaves the constants to the context alone")
{
    const auto p = add(mixed_plan());
    run();
    run_standby();
    standby.forget_context();
    plans.distrust_shared();
    ahead = worker_memory(++generations);
    run_standby();
    CHECK(ahead.asked["memory.import"] == 0);
    CHECK(ahead.asked["memory.export"] == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    p->closing = true;
    run();
    run_standby();
    CHECK(current.live.empty());
    CHECK(ahead.live.empty());
    CHECK(plans.shared().bytes() == 0);
}

TEST_CASE("a load that fails leaves no memory behind")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        const auto p = f.add(mixed_plan());
        // Only compared with null.
        alignas(load_call) std::byte call[sizeof(load_call)];
        p->call = reinterpret_cast<load_call*>(&call);
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.step();
        if (!more || !f.step(errc::out_of_memory))
            break;
        if (f.unshared > 0)
            continue;
        CHECK(p->gone);
        CHECK(f.current.live.empty());
        CHECK(f.plans.shared().bytes() == 0);
    }
}

TEST_SUITE_END();

} // namespace test_device_shared_constants_faults
