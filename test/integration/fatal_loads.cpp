#include "poison_fixture.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>

// Plans whose loading ends their worker, each time.
namespace test_integration_fatal_loads {

namespace {

using namespace coaccel;
using test::await;
using test::fatal_loads;
using test::poison_elements;
using test::poison_options;

device_options fatal_options(int standby, int max_restarts)
{
    auto o = poison_options(standby);
    o.restart.max_restarts = max_restarts;
    // A load that ends its worker is alone for longer than this, however slow the machine is.
    o.context.hang_timeout = std::chrono::seconds(58);
    return o;
}

struct fixture : test::poison_fixture {
    fixture(int standby, int max_restarts) : poison_fixture(fatal_options(standby, max_restarts)) {}

    error_code run(const plan& p)
    {
        const std::vector<float> x(poison_elements, 3);
        std::vector<float> y(poison_elements);
        const auto ended = await(io, p.async_run(from(x), to(y)));
        CHECK((!ended || y == std::vector<float>(poison_elements, 6)));
        return ended ? error_code() : ended.error();
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated fatal loads");

TEST_CASE("a plan whose loading ends each worker is an error of its caller, and the device goes on")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        const fatal_loads fatal;
        // So that a second loss without an explanation would end the device.
        fixture f(standby, 1);
        const plan innocent = f.load();
        const auto runs = f.start_many(innocent, 20);
        const auto made = await(f.io, f.gpu.async_load(test::fatal_plan()));
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::context_lost);
        CHECK(made.error().message().starts_with(
            "plan fatal: loading it ended the context 2 times while nothing else was on it: "));
        f.check_right(runs);
        f.check_right(f.start_many(innocent, 20));
        const auto s = f.stats();
        CHECK(s.generation == 4);
        CHECK(s.convicted == 2);
        CHECK(s.plans.size() == 1);
    }
}

TEST_CASE("a plan whose loading has ended workers costs no further ones until the device is revived")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        std::optional<fatal_loads> fatal(std::in_place);
        fixture f(standby, 2);
        const plan innocent = f.load();
        CHECK(await(f.io, f.gpu.async_load(test::fatal_plan())).error() == errc::context_lost);
        // The context that follows the last loss.
        test::run_until(f.io, [&] { return f.gpu.status().state == device_state::ready; });
        const auto before = f.stats();
        CHECK(before.generation == 4);
        const auto runs = f.start_many(innocent, 20);
        for (int i = 0; i < 3; ++i) {
            const auto again = await(f.io, f.gpu.async_load(test::fatal_plan()));
            REQUIRE_FALSE(again);
            CHECK(again.error() == errc::plan_quarantined);
            CHECK(again.error().message().starts_with("async_load: plan fatal is refused for another "));
        }
        f.check_right(runs);
        CHECK(f.stats().generation == before.generation);
        CHECK(f.stats().convicted == before.convicted);
        // A standby was started while the load was fatal.
        if (standby > 0)
            continue;
        fatal.reset();
        f.kill();
        CHECK(await(f.io, f.gpu.async_load(test::fatal_plan())).error() == errc::plan_quarantined);
        REQUIRE(await(f.io, f.gpu.async_revive()));
        const auto made = await(f.io, f.gpu.async_load(test::fatal_plan()));
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK_FALSE(f.run(made.value()));
        CHECK(f.stats().convicted == before.convicted);
    }
}

TEST_CASE("a plan that can no longer be loaded after a loss is quarantined until it is revived, and the others go on")
{
    fixture f(0, 4);
    const plan innocent = f.load();
    const auto made = await(f.io, f.gpu.async_load(test::fatal_plan()));
    REQUIRE_MESSAGE(made, made.error().message());
    const plan& p = made.value();
    CHECK_FALSE(f.run(p));
    std::optional<fatal_loads> fatal(std::in_place);
    f.kill();
    f.check_right(f.start_many(innocent, 20));
    CHECK(f.run(p) == errc::plan_quarantined);
    CHECK(p.quarantined());
    CHECK_FALSE(innocent.quarantined());
    f.check_right(f.start_many(innocent, 20));
    CHECK(f.stats().generation == 5);
    CHECK(f.stats().convicted == 2);
    // In the next worker it is not loaded.
    f.kill();
    f.check_right(f.start_many(innocent, 20));
    CHECK(f.stats().convicted == 2);
    fatal.reset();
    f.kill();
    REQUIRE(await(f.io, p.async_revive()));
    CHECK_FALSE(f.run(p));
    CHECK_FALSE(p.quarantined());
    f.check_right(f.start_many(innocent, 20));
    CHECK(f.gpu.status().state == device_state::ready);
}

TEST_CASE("a plan whose loading ends standbys is left out of them, and quarantined only if it ends the next worker too")
{
    fixture f(1, 4);
    const auto made = await(f.io, f.gpu.async_load(test::fatal_plan()));
    REQUIRE_MESSAGE(made, made.error().message());
    const plan& p = made.value();
    const plan innocent = f.load();
    f.wait_for_standby_plans(2);
    const fatal_loads fatal;
    // The standby has begun before.
    f.kill();
    CHECK_FALSE(f.run(p));
    // The plan is the first one to be loaded, and the next standbys do not survive that.
    f.wait_for_standby_plans(1);
    CHECK_FALSE(f.run(p));
    CHECK(f.stats().generation == 2);
    f.kill();
    f.check_right(f.start_many(innocent, 20));
    CHECK(f.run(p) == errc::plan_quarantined);
    f.check_right(f.start_many(innocent, 20));
    CHECK(f.stats().convicted == 2);
    CHECK(f.gpu.status().state == device_state::ready);
}

TEST_SUITE_END();

} // namespace test_integration_fatal_loads
