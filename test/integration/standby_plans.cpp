#include "inventory.hpp"
#include "isolated.hpp"
#include "ready_workers.hpp"
#include "support/example_plans.hpp"

#include <doctest/doctest.h>

#include <optional>

namespace test_integration_standby_plans {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::axpy_plan;
using test::counting_plan;
using test::expected;
using test::isolated_options;
using test::numbers;

constexpr std::size_t n = test::plan_elements;

device_options with_standbys(int standby = 1)
{
    auto o = isolated_options();
    o.standby = standby;
    return o;
}

struct fixture : test::isolated_fixture {
    explicit fixture(const device_options& o = with_standbys()) : isolated_fixture(o) {}

    device_stats stats() { return test::await(io, gpu.async_stats()).value(); }

    plan load(const plan_description& d, plan_options how = {})
    {
        auto made = test::await(io, gpu.async_load(d, how));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    /// Waits until the standby can run this many plans.
    void wait_for_plans(std::uint64_t count)
    {
        test::run_until(io, [&] { return stats().standby_plans == count; });
    }

    void check_run(const plan& p, exec_options how = {})
    {
        const auto x = numbers(n);
        std::vector<float> y(n);
        const auto ended = test::await(io, p.with(how).async_run(from(x), to(y)));
        REQUIRE_MESSAGE(ended, ended.error().message());
        CHECK(y == expected(x));
    }

    float count(const plan& p, float value)
    {
        float y = 0;
        const auto ended = test::await(io, p.async_run(from(std::span(&value, 1)), to(std::span(&y, 1))));
        REQUIRE_MESSAGE(ended, ended.error().message());
        return y;
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated standby plans");

TEST_CASE("after a take-over plans run without being loaded again")
{
    fixture f;
    const plan a = f.load(axpy_plan(), {.instances = 4});
    const plan c = f.load(counting_plan());
    CHECK(f.count(c, 5) == 15);
    for (const generation g : {generation(2), generation(3), generation(4)}) {
        CAPTURE(g);
        f.wait_for_plans(2);
        const auto before = f.stats();
        CHECK(before.generation + 1 == g);
        f.send(SIGKILL);
        f.wait_for_generation(g);
        f.check_run(a);
        // States have their initial content.
        CHECK(f.count(c, 1) == 11);
        const auto after = f.stats();
        CHECK(after.generation == g);
        CHECK(after.plan_instances == before.plan_instances);
        CHECK(after.hardware.process != before.hardware.process);
        // A constant, a state, two instances.
        CHECK(after.live_buffers == 4);
    }
}

TEST_CASE("after a take-over the plans of a set have their common state, and their runs keep their order")
{
    fixture f;
    // One instance each, so that none is made on demand.
    const plan_options one{.instances = 1};
    const auto set = test::await(f.io, f.gpu.async_load(test::counting_set(), one));
    REQUIRE_MESSAGE(set, set.error().message());
    const plan add = set.value()["add"];
    const plan twice = set.value()["twice"];
    CHECK(f.count(add, 5) == 15);
    for (const generation g : {generation(2), generation(3)}) {
        CAPTURE(g);
        f.wait_for_plans(3);
        const auto before = f.stats();
        f.send(SIGKILL);
        f.wait_for_generation(g);
        // Started together, without waiting for each other: 10 + 1, times 2, + 3, + 4.
        const float x[] = {1, 3, 4};
        float y[3] = {};
        int ended = 0;
        for (int i = 0; i < 3; ++i)
            (i == 1 ? twice : add).async_run(from(std::span(x + i, 1)), to(std::span(y + i, 1)), [&](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
        test::run_until(f.io, [&] { return ended == 3; });
        CHECK(y[0] == 11);
        CHECK(y[1] == 25);
        CHECK(y[2] == 29);
        const auto after = f.stats();
        CHECK(after.plan_instances == before.plan_instances);
        // The state, the constant and three instances.
        CHECK(after.live_buffers == 5);
    }
}

TEST_CASE("a run that is repeated after a fault uses the instance of the standby")
{
    fixture f;
    const plan a = f.load(axpy_plan());
    f.wait_for_plans(1);
    const auto before = f.stats();
    const auto x = numbers(n);
    std::vector<float> y(n);
    std::optional<error_code> ended;
    f.send(SIGKILL);
    const exec_options again{.retry = retry::idempotent};
    a.with(again).async_run(from(x), to(y), [&](error_code ec) { ended = ec; });
    test::run_until(f.io, [&] { return ended.has_value(); });
    CHECK_FALSE(*ended);
    CHECK(y == expected(x));
    const auto after = f.stats();
    CHECK(after.generation == 2);
    CHECK(after.plan_instances == before.plan_instances);
}

TEST_CASE("further instances are made after the take-over")
{
    fixture f;
    const plan a = f.load(axpy_plan(), {.instances = 3, .initial = 3});
    f.wait_for_plans(1);
    const auto before = f.stats().plan_instances;
    f.send(SIGKILL);
    f.wait_for_generation(2);
    f.check_run(a);
    test::run_until(f.io, [&] { return f.stats().plan_instances == before + 2; });
    CHECK(f.stats().live_buffers == 4);
}

TEST_CASE("a plan that is loaded or unloaded later is loaded and unloaded on the standby too")
{
    fixture f;
    const plan a = f.load(axpy_plan());
    f.wait_for_plans(1);
    {
        const plan b = f.load(axpy_plan(2 * n));
        f.wait_for_plans(2);
        plan c = f.load(counting_plan());
        f.wait_for_plans(3);
        REQUIRE(test::await(f.io, c.async_unload()));
        f.wait_for_plans(2);
    }
    f.wait_for_plans(1);
    f.send(SIGKILL);
    f.wait_for_generation(2);
    f.check_run(a);
    // Its constant and its instance; nothing of the others.
    CHECK(f.stats().live_buffers == 2);
}

TEST_CASE("a plan that is unloaded just before the take-over leaves nothing")
{
    fixture f;
    const plan a = f.load(axpy_plan());
    plan b = f.load(axpy_plan(2 * n));
    f.wait_for_plans(2);
    f.send(SIGKILL);
    REQUIRE(test::await(f.io, b.async_unload()));
    f.wait_for_generation(2);
    f.check_run(a);
    test::run_until(f.io, [&] { return f.stats().live_buffers == 2; });
}

TEST_CASE("a replaced context is followed by the standby")
{
    fixture f;
    const plan a = f.load(axpy_plan());
    f.wait_for_plans(1);
    const auto before = f.stats();
    REQUIRE(test::await(f.io, f.gpu.async_replace()));
    f.check_run(a);
    const auto after = f.stats();
    CHECK(after.generation == 2);
    CHECK(after.plan_instances == before.plan_instances);
}

TEST_CASE("a standby that dies is replaced and loads the plans again")
{
    fixture f;
    const plan a = f.load(axpy_plan());
    f.wait_for_plans(1);
    const int first = f.process();
    const auto standbys = test::ready_besides(first);
    REQUIRE(standbys.size() == 1);
    REQUIRE(::kill(standbys.front(), SIGKILL) == 0);
    f.wait_for_plans(0);
    f.wait_for_plans(1);
    CHECK(f.process() == first);
    const auto before = f.stats().plan_instances;
    f.send(SIGKILL);
    f.wait_for_generation(2);
    f.check_run(a);
    CHECK(f.stats().plan_instances == before);
}

TEST_CASE("a device that loses its worker and its standby at once loads its plans again")
{
    fixture f;
    const plan a = f.load(axpy_plan());
    f.wait_for_plans(1);
    const int first = f.process();
    for (const int standby : test::ready_besides(first))
        REQUIRE(::kill(standby, SIGKILL) == 0);
    REQUIRE(::kill(first, SIGKILL) == 0);
    f.check_run(a, {.retry = retry::idempotent});
    f.wait_for_plans(1);
    f.check_run(a);
}

TEST_CASE("of several standbys the next one has the plans")
{
    fixture f(with_standbys(2));
    const plan a = f.load(axpy_plan());
    for (const generation g : {generation(2), generation(3), generation(4)}) {
        f.wait_for_plans(1);
        test::run_until(f.io, [&] { return test::ready_besides(f.process()).size() == 2; });
        const auto before = f.stats().plan_instances;
        f.send(SIGKILL);
        f.wait_for_generation(g);
        f.check_run(a);
        CHECK(f.stats().plan_instances == before);
    }
}

TEST_CASE("a device whose plans have left keeps its standby")
{
    fixture f;
    {
        const plan a = f.load(axpy_plan());
        f.wait_for_plans(1);
    }
    f.wait_for_plans(0);
    for (const generation g : {generation(2), generation(3)}) {
        test::run_until(f.io, [&] { return test::ready_besides(f.process()).size() == 1; });
        f.send(SIGKILL);
        f.wait_for_generation(g);
        CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
    }
}

TEST_CASE("a failed device ends its standby, and has one again after it is revived")
{
    auto o = with_standbys();
    o.restart.max_restarts = 0;
    fixture f(o);
    const plan a = f.load(axpy_plan());
    f.wait_for_plans(1);
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    test::run_until(f.io, [&] { return test::childless(); });
    REQUIRE(test::await(f.io, f.gpu.async_revive()));
    f.check_run(a);
    f.wait_for_plans(1);
}

TEST_CASE("a device can end at any time with a standby that loads plans")
{
    {
        const fixture once;
    }
    const auto before = test::inventory::take();
    enum class how { drop, drain, abandon, context };
    for (const auto end : {how::drop, how::drain, how::abandon, how::context})
        for (const auto delay : {0ms, 5ms, 20ms, 50ms, 100ms}) {
            CAPTURE(int(end));
            CAPTURE(delay.count());
            {
                asio::io_context io{1};
                auto gpu = test::make_device(io, with_standbys());
                auto p = test::await(io, gpu.async_load(axpy_plan(), {.instances = 4, .initial = 4}));
                REQUIRE(p);
                auto work = asio::make_work_guard(io);
                io.restart();
                io.run_for(delay);
                work.reset();
                if (end == how::drain || end == how::abandon)
                    CHECK(test::await(io, gpu.async_shutdown(end == how::drain ? shutdown::drain : shutdown::abandon)));
                if (end != how::context) {
                    p = errc::device_stopped;
                    gpu = {};
                    test::run_out(io);
                }
            }
            CHECK(test::inventory::take_expecting(before) == before);
            CHECK(test::childless());
        }
}

TEST_CASE("whenever workers die, plans run again and nothing is left")
{
    {
        const fixture once;
    }
    const auto before = test::inventory::take();
    {
        auto o = with_standbys();
        o.restart.initial_backoff = o.restart.max_backoff = 1ms;
        fixture f(o);
        const plan a = f.load(axpy_plan());
        const plan c = f.load(counting_plan());
        const exec_options again{.retry = retry::idempotent};
        for (int i = 0; i < 20; ++i) {
            CAPTURE(i);
            f.io.restart();
            f.io.run_for(std::chrono::milliseconds(i * 7 % 60));
            // The worker, the standby, or both.
            if (i % 3 != 0)
                for (const int standby : test::ready_besides(f.process()))
                    ::kill(standby, SIGKILL);
            if (i % 3 != 1)
                f.send(SIGKILL);
            f.check_run(a, again);
        }
        f.wait_for_plans(2);
    }
    CHECK(test::inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

TEST_SUITE_END();

} // namespace test_integration_standby_plans
