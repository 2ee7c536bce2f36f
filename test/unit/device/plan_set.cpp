#include "support/device_fixture.hpp"
#include "support/example_plans.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <future>
#include <optional>
#include <vector>

namespace test_device_plan_set {

namespace {

using namespace coaccel;
using test::await;
using test::counting_set;

struct fixture : test::device_fixture {
    explicit fixture(device_options o = test::pool_options()) : device_fixture(o) {}

    plan_set load(const plan_set_description& d, plan_options how = {})
    {
        auto made = await(io, gpu.async_load(d, how));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    float run(const plan& p, float x)
    {
        const std::vector<float> given{x};
        std::vector<float> got(1);
        const auto done = await(io, p.async_run(from(given), to(got)));
        CHECK_MESSAGE(done, done.error().message());
        return got[0];
    }

    std::uint64_t live() { return await(io, gpu.async_stats()).value().live_buffers; }
};

/// Many runs of "add" and "twice" at the same time, in an order that is not regular.
struct many_runs {
    static constexpr int count = 60;

    template <class Options>
    void start(const plan_set& s, const Options& how, int i)
    {
        const plan p = is_twice(i) ? s["twice"] : s["add"];
        p.with(how).async_run(from(one), to(y[i]), [this, i](error_code ec) {
            errors[i] = ec;
            ++ended;
        });
    }

    static bool is_twice(int i) { return i % 5 == 1 || i % 7 == 3; }

    static float next(float total, int i)
    {
        // Few doublings, so that the numbers stay exact.
        return (is_twice(i) ? 2 * total : total) + 1;
    }

    const std::vector<float> one{1};
    std::vector<std::vector<float>> y{count, std::vector<float>(1)};
    std::vector<error_code> errors{count, error_code()};
    int ended = 0;
};

/// One plan can be loaded, the other calls a function that no plug-in has.
plan_set_description with_missing_function()
{
    plan_set_builder set("bad");
    const auto s = set.state<float>(64, "s");
    const auto w = set.constant<float>(std::vector<float>(64, 2), "w");
    set.plan("first").add(memory::copy<float>{w, s});
    plan_builder& second = set.plan("second");
    second.add(memory::copy<float>{w, s});
    second.add(plugin::call("no such function", inout(s)));
    set.plan("third").add(memory::copy<float>{w, s});
    return set.finish().value();
}

TEST_SUITE_BEGIN("plan_set");

TEST_CASE_FIXTURE(fixture, "the plans of a set are found by index and by name")
{
    const plan_set s = load(counting_set());
    CHECK(bool(s));
    CHECK(s.size() == 3);
    CHECK(s["add"] == s[0]);
    CHECK(s["twice"] == s[1]);
    CHECK(s["add"].description().name() == "count.add");
    CHECK(s.description() == counting_set());
    CHECK(s.get_device() == gpu);
    CHECK(s.get_executor() == gpu.get_executor());
    CHECK_FALSE(s["other"]);
    CHECK_FALSE(s[3]);
    CHECK_FALSE(plan_set());
    CHECK_FALSE(plan_set()["add"]);
    CHECK(s == plan_set(s));
    CHECK(s != load(counting_set()));
}

TEST_CASE_FIXTURE(fixture, "common states and constants exist once")
{
    const auto before = live();
    const plan_set s = load(counting_set());
    // The state, the constant, and the memory of three instances.
    CHECK(live() == before + 5);
    REQUIRE(await(io, s.async_unload()));
    CHECK(live() == before);
    // Again, and with nothing to unload.
    CHECK(await(io, s.async_unload()));
    std::vector<float> x{1};
    CHECK(await(io, s["add"].async_run(from(x), to(x))).error() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(fixture, "two sets of the same description have states of their own")
{
    const plan_set a = load(counting_set());
    const plan_set b = load(counting_set());
    CHECK(run(a["add"], 1) == 11);
    CHECK(run(b["add"], 5) == 15);
    CHECK(run(a["twice"], 0) == 22);
}

TEST_CASE_FIXTURE(fixture, "empty sets and bad options are refused")
{
    CHECK(await(io, gpu.async_load(plan_set_description())).error() == errc::invalid_argument);
    CHECK(await(io, gpu.async_load(counting_set(), {.instances = 0})).error() == errc::invalid_option);
    const auto outcome = [](auto start) {
        std::promise<error_code> made;
        start([&made](error_code ec, auto&&...) { made.set_value(ec); });
        return made.get_future().get();
    };
    CHECK(outcome([](auto h) { plan_set().async_unload(h); }) == errc::invalid_argument);
    CHECK(outcome([](auto h) { device().async_load(counting_set(), h); }) == errc::invalid_argument);
}

TEST_CASE("runs of several plans happen in the order in which they were started")
{
    struct table_row {
        plan_options how;
        std::uint64_t in_flight;
    };
    for (const table_row& t : {table_row{{.instances = 1}, 1000}, table_row{{.instances = 2}, 1000},
                               table_row{{.instances = 3, .initial = 3}, 2}, table_row{{.instances = 16}, 1000}}) {
        auto options = test::pool_options();
        options.queue.max_in_flight = t.in_flight;
        fixture f(options);
        const plan_set s = f.load(counting_set(), t.how);
        many_runs m;
        for (int i = 0; i < many_runs::count; ++i)
            m.start(s, exec_options{}, i);
        test::run_until(f.io, [&] { return m.ended == many_runs::count; });
        float total = 10;
        for (int i = 0; i < many_runs::count; ++i) {
            total = many_runs::next(total, i);
            CHECK_FALSE(m.errors[i]);
            CHECK(m.y[i][0] == total);
        }
    }
}

TEST_CASE_FIXTURE(fixture, "if a plan of a set cannot be loaded nothing is left, and the error names it")
{
    const auto before = live();
    for (int round = 0; round < 3; ++round) {
        const auto refused = await(io, gpu.async_load(with_missing_function()));
        CHECK(refused.error() == errc::function_missing);
        CHECK(refused.error().message().starts_with("plan bad.second: "));
        CHECK(live() == before);
    }
    CHECK(run(load(counting_set())["add"], 1) == 11);
}

TEST_CASE("a set that is larger than the memory is refused, and nothing is left")
{
    auto options = test::pool_options();
    options.host.memory_limit = 1 << 20;
    fixture f(options);
    const auto before = f.live();
    const auto refused = await(f.io, f.gpu.async_load(counting_set(1 << 20)));
    CHECK(refused.error() == errc::out_of_memory);
    CHECK(refused.error().message().starts_with("plan count.add: "));
    CHECK(f.live() == before);
}

TEST_CASE_FIXTURE(fixture, "unloading a set ends after its runs, and refuses those that wait")
{
    const auto before = live();
    const plan_set s = load(counting_set(), {.instances = 1});
    many_runs m;
    for (int i = 0; i < many_runs::count; ++i)
        m.start(s, exec_options{}, i);
    std::optional<error_code> unloaded;
    s.async_unload([&](error_code ec) {
        unloaded = ec;
        CHECK(m.ended == many_runs::count);
    });
    test::run_until(io, [&] { return unloaded.has_value(); });
    CHECK_FALSE(*unloaded);
    CHECK(live() == before);
    float total = 10;
    for (int i = 0; i < many_runs::count; ++i) {
        if (m.errors[i]) {
            CHECK(m.errors[i] == errc::invalid_argument);
            continue;
        }
        total = many_runs::next(total, i);
        CHECK(m.y[i][0] == total);
    }
}

TEST_CASE_FIXTURE(fixture, "a plan of a set can be unloaded alone, and the common state stays")
{
    const auto before = live();
    plan_set s = load(counting_set());
    CHECK(run(s["add"], 1) == 11);
    REQUIRE(await(io, s["add"].async_unload()));
    CHECK(live() == before + 4);
    CHECK(run(s["twice"], 1) == 23);
    // Also if one of several runs waits for the plan that leaves.
    REQUIRE(await(io, s.async_unload()));
    CHECK(live() == before);
}

TEST_CASE_FIXTURE(fixture, "a plan of a set keeps its states when the set is gone")
{
    const auto before = live();
    plan twice;
    {
        const plan_set s = load(counting_set());
        CHECK(run(s["add"], 1) == 11);
        twice = s["twice"];
    }
    // The state and one instance.
    test::run_until(io, [&] { return live() == before + 2; });
    CHECK(run(twice, 1) == 23);
    twice = {};
    test::run_until(io, [&] { return live() == before; });
}

TEST_CASE_FIXTURE(fixture, "dropping a set with runs on the way lets them end")
{
    const auto before = live();
    many_runs m;
    {
        const plan_set s = load(counting_set(), {.instances = 2, .initial = 2});
        m.start(s, exec_options{}, 0);
        m.start(s, exec_options{}, 1);
    }
    test::run_until(io, [&] { return m.ended == 2 && live() == before; });
    CHECK(m.y[0][0] == 11);
    CHECK(m.y[1][0] == 23);
}

TEST_CASE_FIXTURE(fixture, "after a replacement the common state begins again, once for all plans")
{
    const plan_set s = load(counting_set());
    for (int i = 0; i < 5; ++i) {
        CHECK(run(s["add"], 1) == 11);
        CHECK(run(s["twice"], 1) == 23);
        CHECK(run(s["add"], 1) == 24);
        REQUIRE(await(io, gpu.async_replace()));
    }
    // Whichever plan runs first.
    CHECK(run(s["twice"], 1) == 21);
}

TEST_CASE("a set whose load is in progress is loaded into the next context")
{
    for (int turns = 0; turns < 20; ++turns) {
        fixture f;
        std::optional<result<plan_set>> made;
        f.gpu.async_load(counting_set(), [&](error_code ec, plan_set s) {
            made = ec ? result<plan_set>(ec) : result<plan_set>(std::move(s));
        });
        for (int n = 0; n < turns; ++n)
            f.io.poll_one();
        bool replaced = false;
        f.gpu.async_replace([&](error_code) { replaced = true; });
        test::run_until(f.io, [&] { return made.has_value() && replaced; });
        REQUIRE(*made);
        CHECK(f.run(made->value()["add"], 1) == 11);
        CHECK(f.run(made->value()["twice"], 1) == 23);
    }
}

TEST_CASE("after a fault, the runs of all plans continue with the initial state, in their order")
{
    for (int round = 0; round < 20; ++round) {
        fault_injector injector;
        auto options = test::pool_options();
        options.host.injector = &injector;
        options.restart.max_restarts = 100;
        fixture f(options);
        const plan_set s = f.load(counting_set(), {.instances = 1 + round % 3});
        many_runs m;
        const exec_options how{.retry = round % 2 == 0 ? retry::never : retry::idempotent};
        for (int i = 0; i < many_runs::count; ++i) {
            m.start(s, how, i);
            if (i == many_runs::count / 2)
                injector.poison();
        }
        test::run_until(f.io, [&] { return m.ended == many_runs::count; });
        float total = 10;
        bool begun_again = false;
        for (int i = 0; i < many_runs::count; ++i) {
            if (m.errors[i]) {
                CHECK(is_context_lost(m.errors[i]));
                continue;
            }
            total = many_runs::next(total, i);
            // At one place the runs begin again with the initial state.
            if (m.y[i][0] != total && !begun_again) {
                begun_again = true;
                total = many_runs::next(10, i);
            }
            CHECK(m.y[i][0] == total);
        }
        CHECK(f.run(s["add"], 1) == total + 1);
    }
}

TEST_CASE_FIXTURE(fixture, "a cancelled load of a set leaves nothing")
{
    const auto before = live();
    for (int turns = 0; turns < 20; ++turns) {
        asio::cancellation_signal stop;
        std::optional<error_code> ended;
        gpu.async_load(counting_set(),
                       asio::bind_cancellation_slot(stop.slot(), [&](error_code ec, const plan_set&) { ended = ec; }));
        for (int n = 0; n < turns; ++n)
            io.poll_one();
        stop.emit(asio::cancellation_type::total);
        test::run_until(io, [&] { return ended.has_value(); });
        CHECK((!*ended || *ended == asio::error::operation_aborted));
        test::run_until(io, [&] { return live() == before; });
    }
}

TEST_CASE_FIXTURE(fixture, "a device that shuts down ends the calls of a set")
{
    const plan_set s = load(counting_set());
    std::vector<error_code> ended;
    gpu.async_load(counting_set(2), [&](error_code ec, const plan_set&) { ended.push_back(ec); });
    s.async_unload([&](error_code ec) { ended.push_back(ec); });
    gpu.async_shutdown(shutdown::abandon, [&](error_code ec) { ended.push_back(ec); });
    test::run_until(io, [&] { return ended.size() == 3; });
    CHECK(await(io, gpu.async_load(counting_set())).error() == errc::device_stopped);
}

TEST_CASE("an io_context may be destroyed while a set is loaded and unloaded")
{
    plan_set s;
    const std::vector<float> x{1};
    std::vector<float> y(1);
    {
        asio::io_context io;
        device gpu = test::make_device(io);
        s = await(io, gpu.async_load(counting_set())).value();
        s["add"].async_run(from(x), to(y), [](error_code) { FAIL("the handler must not be called"); });
        gpu.async_load(counting_set(2), [](error_code, const plan_set&) { FAIL("the handler must not be called"); });
        s.async_unload([](error_code) { FAIL("the handler must not be called"); });
    }
    s = {};
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_plan_set
