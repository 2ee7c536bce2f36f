#include "shared_constants_fixture.hpp"

#include <coaccel/device/load_progress.hpp>

namespace test_device_shared_constants {

using namespace test::sharing_constants;

TEST_SUITE_BEGIN("shared_constants");

TEST_CASE_FIXTURE(fixture, "the first context fills large constants, and every later one imports them")
{
    const auto p = add(mixed_plan());
    run();
    CHECK(current.asked["memory.allocate exportable"] == 2);
    CHECK(current.asked["memory.export"] == 2);
    CHECK(current.asked["memory.write<u8>"] == 3);
    CHECK(current.read_only.size() == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    run_standby();
    // Only the small one is uploaded.
    CHECK(ahead.asked["memory.import"] == 2);
    CHECK(ahead.asked["memory.write<u8>"] == 1);
    CHECK(ahead.asked["memory.export"] == 0);
    CHECK(ahead.loaded == 1);
    for (int i = 0; i < 3; ++i) {
        lose();
        run();
        CHECK(current.asked["memory.import"] == 2);
        CHECK(current.asked["memory.write<u8>"] == 1);
        CHECK(current.loaded == 1);
        CHECK(plans.shared().bytes() == mixed_shared);
    }
    CHECK(unshared == 0);
}

TEST_CASE_FIXTURE(fixture, "small constants that are large together are shared as one")
{
    const auto p = add(packed_plan());
    run();
    CHECK(current.asked["memory.allocate exportable"] == 2);
    CHECK(current.asked["memory.export"] == 2);
    CHECK(current.asked["memory.write<u8>"] == packed_writes);
    CHECK(plans.shared().bytes() == packed_shared);
    run_standby();
    CHECK(ahead.asked["memory.import"] == 2);
    CHECK(ahead.asked["memory.write<u8>"] == 0);
    // An equal plan, and one with other small constants.
    const auto q = add(packed_plan());
    const auto r = add(plan_of({{2, large / 2}, {3, large / 2}}));
    run();
    CHECK(current.asked["memory.export"] == 3);
    CHECK(current.loaded == 3);
    lose();
    run();
    CHECK(current.asked["memory.import"] == 3);
    CHECK(current.asked["memory.write<u8>"] == 0);
    p->closing = q->closing = r->closing = true;
    run();
    run_standby();
    CHECK(current.live.empty());
    CHECK(ahead.live.empty());
    CHECK(plans.shared().bytes() == 0);
    CHECK(unshared == 0);
}

TEST_CASE_FIXTURE(fixture, "without sharing each small constant has its own buffer")
{
    const auto p = add(packed_plan());
    run(sharing::no);
    CHECK(current.asked["memory.allocate exportable"] == 0);
    // The constants, and the instance.
    CHECK(current.asked["memory.allocate"] == packed_writes + 1);
    p->closing = true;
    run(sharing::no);
    CHECK(current.live.empty());
}

TEST_CASE_FIXTURE(fixture, "a context that cannot share has all constants for itself")
{
    const auto p = add(mixed_plan());
    run(sharing::no);
    CHECK(current.asked["memory.allocate exportable"] == 0);
    CHECK(current.asked["memory.export"] == 0);
    CHECK(current.asked["memory.write<u8>"] == 3);
    CHECK(plans.shared().bytes() == 0);
}

TEST_CASE_FIXTURE(fixture, "plans with equal constants share them, until the last one leaves the device")
{
    const auto a = add(mixed_plan());
    const auto b = add(plan_of({{1, large}}));
    run();
    run_standby();
    CHECK(current.asked["memory.export"] == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    a->closing = true;
    run();
    CHECK(a->gone);
    // The handle of the plan still exists.
    CHECK(plans.shared().bytes() == large * sizeof(float));
    lose();
    run();
    CHECK(current.asked["memory.import"] == 1);
    CHECK(current.asked["memory.write<u8>"] == 0);
    b->closing = true;
    run();
    CHECK(plans.shared().bytes() == 0);
    run_standby();
    CHECK(ahead.live.empty());
    CHECK(current.live.empty());
}

TEST_CASE_FIXTURE(fixture, "the standby waits until the device has filled the constants")
{
    const auto p = add(mixed_plan());
    CHECK_FALSE(standby_step());
    run();
    REQUIRE(standby_step());
    run_standby();
    CHECK(ahead.asked["memory.export"] == 0);
    // Both workers die: again only one of them would fill what is missing, and nothing is.
    standby.forget_context();
    ahead = worker_memory(9);
    lose();
    run_standby();
    CHECK(ahead.loaded == 1);
    CHECK(ahead.asked["memory.import"] == 2);
    CHECK(ahead.asked["memory.export"] == 0);
}

TEST_CASE_FIXTURE(fixture, "a standby that takes over in the middle of a load continues with it")
{
    const auto p = add(mixed_plan());
    run();
    REQUIRE(standby_step());
    REQUIRE(standby_step());
    for (const auto& q : plans.all())
        q->pool.clear();
    (void)plans.forget_context();
    (void)plans.adopt(standby);
    current = std::exchange(ahead, worker_memory(9));
    run();
    CHECK(current.loaded == 1);
    CHECK(current.asked["memory.export"] == 0);
    CHECK(plans.shared().bytes() == mixed_shared);
}

TEST_CASE_FIXTURE(fixture, "a plan that the device cannot load is filled by the standby")
{
    const auto p = add(mixed_plan());
    p->broken = make_error_code(errc::out_of_memory);
    run_standby();
    CHECK(ahead.asked["memory.export"] == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
}

TEST_CASE_FIXTURE(fixture, "a plan that has left while the standby fills its constants keeps none")
{
    const auto p = add(mixed_plan());
    p->broken = make_error_code(errc::out_of_memory);
    while (ahead.asked["memory.export"] == 0) {
        REQUIRE(standby_step());
        if (ahead.asked["memory.write<u8>"] == 1)
            (void)plans.take_all();
        if (p->gone)
            break;
    }
    run_standby();
    CHECK(p->kept_constants.empty());
    CHECK(plans.shared().bytes() == 0);
    CHECK(ahead.live.empty());
}

TEST_CASE_FIXTURE(fixture, "the progress of a load is complete whether constants are filled or imported")
{
    constexpr std::uint64_t all = (2 * large + large + 100 + 8) * sizeof(float);
    for (int i = 0; i < 2; ++i) {
        CAPTURE(i);
        const auto p = add(mixed_plan());
        load_progress progress;
        load_progress_access::begin(progress, all, 1);
        p->progress = &progress;
        if (i == 1)
            lose();
        std::uint64_t last = 0;
        while (step()) {
            CHECK(progress.bytes() >= last);
            CHECK(progress.bytes() <= all);
            last = progress.bytes();
        }
        CHECK(progress.bytes() == all);
        p->progress = nullptr;
    }
    CHECK(current.asked["memory.import"] == 2);
}

TEST_CASE("constants are found by their content, as long as a plan owns them")
{
    const auto content = [](float value) {
        static const auto a = plan_of({{1, 8}}), b = plan_of({{2, 8}});
        return group_constants(plan_access::data(value == 1 ? a : b)->constant_contents, packing::none).all.at(0);
    };
    shared_constants all;
    const auto memory = [](std::uint64_t bytes) {
        return std::make_shared<const exported_memory>(exported_memory{unique_fd(), bytes});
    };
    CHECK_FALSE(all.find(content(1)));
    auto one = all.add(content(1), memory(10));
    CHECK(all.find(content(1)) == one);
    CHECK_FALSE(all.find(content(2)));
    // Another context was faster.
    CHECK(all.add(content(1), memory(11)) == one);
    auto two = all.add(content(2), memory(20));
    CHECK(all.bytes() == 30);
    one.reset();
    CHECK(all.bytes() == 20);
    CHECK_FALSE(all.find(content(1)));
    CHECK(all.find(content(2)) == two);
}

TEST_SUITE_END();

} // namespace test_device_shared_constants
