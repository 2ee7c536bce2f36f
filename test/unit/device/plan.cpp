#include "support/device_fixture.hpp"
#include "support/example_plans.hpp"
#include "support/gate.hpp"
#include "support/numbers.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <optional>

namespace test_device_plan {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::axpy_plan;
using test::counting_plan;
using test::expected;
using test::numbers;

constexpr std::size_t n = test::plan_elements;

struct fixture : test::device_fixture {
    explicit fixture(device_options o = test::pool_options()) : device_fixture(o) {}

    plan load(const plan_description& d, plan_options how = {})
    {
        auto made = await(io, gpu.async_load(d, how));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    std::uint64_t used() { return await(io, gpu.async_stats()).value().memory.used; }
    std::uint64_t live() { return await(io, gpu.async_stats()).value().live_buffers; }
};

TEST_SUITE_BEGIN("plan");

TEST_CASE_FIXTURE(fixture, "the memory of a plan goes back when it is unloaded")
{
    const auto before = live();
    plan p = load(axpy_plan(), {.instances = 3, .initial = 3});
    CHECK(live() == before + 4);
    const plan copy = p;
    REQUIRE(await(io, p.async_unload()));
    CHECK(live() == before);
    // Again, and through another copy.
    CHECK(await(io, copy.async_unload()));
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    const auto refused = await(io, copy.async_run(from(x), to(y)));
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(refused.error().message() == "plan axpy: it has been unloaded");
}

TEST_CASE_FIXTURE(fixture, "the memory of a plan goes back when its last copy is destroyed, after its runs")
{
    const auto before = live();
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    std::optional<error_code> ended;
    {
        const plan p = load(axpy_plan());
        p.async_run(from(x), to(y), [&](error_code ec) { ended = ec; });
    }
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK_FALSE(*ended);
    CHECK(y == expected(x));
    test::run_until(io, [&] { return live() == before; });
}

TEST_CASE_FIXTURE(fixture, "runs that wait for an instance end before a plan without handles is unloaded")
{
    const auto before = live();
    plan p = load(axpy_plan(), {.instances = 1});
    std::vector<float> x = numbers(n);
    std::vector<std::vector<float>> y(20, std::vector<float>(n));
    int succeeded = 0;
    for (auto& to_here : y)
        p.async_run(from(x), to(to_here), [&](error_code ec) { succeeded += !ec; });
    p = {};
    test::run_until(io, [&] { return succeeded == 20; });
    for (const auto& made : y)
        CHECK(made == expected(x));
    test::run_until(io, [&] { return live() == before; });
}

TEST_CASE_FIXTURE(fixture, "a plan keeps its device alive")
{
    plan p = load(axpy_plan());
    gpu = {};
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    REQUIRE(await(io, p.async_run(from(x), to(y))));
    CHECK(y == expected(x));
}

TEST_CASE_FIXTURE(fixture, "arguments that do not fit the plan are refused, and the message names them")
{
    const plan p = load(axpy_plan());
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    std::vector<float> small(n - 1);
    std::vector<double> wide(n);
    const auto message = [&](auto operation) {
        const auto r = await(io, std::move(operation));
        return r ? std::string("no error") : r.error().message();
    };
    CHECK(message(p.async_run()) == "plan axpy: input input1 is missing");
    CHECK(message(p.async_run(from(x))) == "plan axpy: output output1 is missing");
    CHECK(message(p.async_run(to(y))) == "plan axpy: input input1 is missing");
    CHECK(message(p.async_run(from(x), from(x), to(y))) == "plan axpy: inputs: the plan has 1, given more");
    CHECK(message(p.async_run(from(small), to(y))) == "plan axpy: input input1 has 8 elements, given 7");
    CHECK(message(p.async_run(from(x), to(wide))) == "plan axpy: output output1 has elements of type f32, given f64");
    CHECK(message(p.async_run(from(x), to(x))) ==
          "plan axpy: arguments 1 and 2 share memory, and an output is among them");
    CHECK(await(io, p.async_run(from(small), to(y))).error() == errc::length_mismatch);
    CHECK(await(io, p.async_run(from(x), to(wide))).error() == errc::wrong_dtype);
    CHECK(await(io, p.async_run(from(x), to(x))).error() == errc::overlap);
    // Nothing is lost.
    REQUIRE(await(io, p.async_run(from(x), to(y))));
    CHECK(y == expected(x));
}

TEST_CASE_FIXTURE(fixture, "an empty plan and bad options are refused")
{
    CHECK(await(io, gpu.async_load(plan_description())).error() == errc::invalid_argument);
    for (const plan_options& how : {plan_options{.instances = 0}, plan_options{.instances = 5000},
                                    plan_options{.instances = 2, .initial = 3}, plan_options{.initial = 0}})
        CHECK(await(io, gpu.async_load(axpy_plan(), how)).error() == errc::invalid_option);
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    // Without a device, the handlers run on the system executor.
    const auto outcome = [](auto start) {
        std::promise<error_code> made;
        start([&made](error_code ec, auto&&...) { made.set_value(ec); });
        return made.get_future().get();
    };
    CHECK(outcome([&](auto h) { plan().async_run(from(x), to(y), h); }) == errc::invalid_argument);
    CHECK(outcome([](auto h) { plan().async_unload(h); }) == errc::invalid_argument);
    CHECK(outcome([](auto h) { device().async_load(axpy_plan(), h); }) == errc::invalid_argument);
    CHECK_FALSE(plan());
    CHECK_FALSE(plan().description());
}

TEST_CASE("a plan that is larger than the memory is refused, and nothing is left")
{
    auto options = test::pool_options();
    options.host.memory_limit = 1 << 20;
    fixture f(options);
    const auto before = f.live();
    const auto refused = await(f.io, f.gpu.async_load(axpy_plan(1 << 20)));
    CHECK(refused.error() == errc::out_of_memory);
    CHECK(f.live() == before);
    CHECK(f.used() == 0);
}

TEST_CASE("a plan with memory for few instances runs with these")
{
    auto options = test::pool_options();
    options.host.memory_limit = 1 << 20;
    fixture f(options);
    const plan p = f.load(axpy_plan(16384), {.instances = 32, .initial = 32});
    const auto x = numbers(16384);
    std::vector<float> y(16384);
    REQUIRE(await(f.io, p.async_run(from(x), to(y))));
    CHECK(y == expected(x));
}

TEST_CASE_FIXTURE(fixture, "runs have deadlines and can be cancelled while they wait")
{
    const plan p = load(axpy_plan(), {.instances = 1});
    test::gate closed;
    auto z = alloc<float>(1);
    gpu.async_submit(inout(z), test::gate_op(&closed), [](error_code) {});
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    CHECK(await(io, p.with(within(-1ms)).async_run(from(x), to(y))).error() == errc::deadline_exceeded);
    closed.open();
    REQUIRE(await(io, p.with(within(10s)).async_run(from(x), to(y))));
    CHECK(y == expected(x));
}

TEST_CASE_FIXTURE(fixture, "after the context was replaced the plan runs again")
{
    const plan p = load(axpy_plan(), {.instances = 2});
    const plan counting = load(counting_plan());
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    std::vector<float> one{1};
    std::vector<float> total{0};
    REQUIRE(await(io, counting.async_run(from(one), to(total))));
    CHECK(total[0] == 11);
    for (int i = 0; i < 3; ++i) {
        REQUIRE(await(io, gpu.async_replace()));
        REQUIRE(await(io, p.async_run(from(x), to(y))));
        CHECK(y == expected(x));
        // States begin again.
        REQUIRE(await(io, counting.async_run(from(one), to(total))));
        CHECK(total[0] == 11);
    }
}

TEST_CASE_FIXTURE(fixture, "runs that were started before a replacement end, later ones use the new context")
{
    const plan p = load(axpy_plan(), {.instances = 2});
    constexpr int runs = 30;
    std::vector<float> x = numbers(n);
    std::vector<std::vector<float>> y(runs, std::vector<float>(n));
    int ended = 0;
    bool replaced = false;
    for (int i = 0; i < runs; ++i) {
        p.async_run(from(x), to(y[i]), [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
        if (i == runs / 2)
            gpu.async_replace([&](error_code ec) {
                CHECK_FALSE(ec);
                replaced = true;
            });
    }
    test::run_until(io, [&] { return ended == runs && replaced; });
    for (const auto& made : y)
        CHECK(made == expected(x));
}

TEST_CASE("a load in progress continues in the next context")
{
    fixture f;
    std::optional<result<plan>> made;
    f.gpu.async_load(axpy_plan(),
                     [&](error_code ec, plan p) { made = ec ? result<plan>(ec) : result<plan>(std::move(p)); });
    bool replaced = false;
    f.gpu.async_replace([&](error_code) { replaced = true; });
    test::run_until(f.io, [&] { return made.has_value() && replaced; });
    REQUIRE(*made);
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    REQUIRE(await(f.io, made->value().async_run(from(x), to(y))));
    CHECK(y == expected(x));
}

TEST_CASE("after a fault, runs on the way end with an error, later ones succeed, and repeatable ones are repeated")
{
    for (int round = 0; round < 10; ++round) {
        fault_injector injector;
        auto options = test::pool_options();
        options.host.injector = &injector;
        options.restart.max_restarts = 100;
        fixture f(options);
        const plan p = f.load(axpy_plan(), {.instances = 3});
        constexpr int runs = 30;
        std::vector<float> x = numbers(n);
        std::vector<std::vector<float>> y(2 * runs, std::vector<float>(n));
        int ended = 0;
        int lost = 0;
        for (int i = 0; i < runs; ++i) {
            p.async_run(from(x), to(y[i]), [&](error_code ec) {
                ++ended;
                if (!ec)
                    return;
                CHECK(is_context_lost(ec));
                ++lost;
            });
            p.with({.retry = retry::idempotent}).async_run(from(x), to(y[runs + i]), [&](error_code ec) {
                ++ended;
                CHECK_FALSE(ec);
            });
            if (i == runs / 2)
                injector.poison();
        }
        test::run_until(f.io, [&] { return ended == 2 * runs; });
        // At most one run for each instance was on the device.
        CHECK(lost <= 3);
        for (int i = runs; i < 2 * runs; ++i)
            CHECK(y[i] == expected(x));
        std::vector<float> last(n);
        REQUIRE(await(f.io, p.async_run(from(x), to(last))));
        CHECK(last == expected(x));
    }
}

TEST_CASE("a device that failed and is revived has its plans")
{
    fault_injector injector;
    auto options = test::pool_options();
    options.host.injector = &injector;
    options.restart.max_restarts = 0;
    fixture f(options);
    const plan p = f.load(axpy_plan());
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    injector.poison();
    CHECK_FALSE(await(f.io, p.async_run(from(x), to(y))));
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(await(f.io, p.async_run(from(x), to(y))).error() == errc::device_failed);
    REQUIRE(await(f.io, f.gpu.async_revive()));
    REQUIRE(await(f.io, p.async_run(from(x), to(y))));
    CHECK(y == expected(x));
}

TEST_CASE("a plan of a failed device can be unloaded, and the device stops")
{
    for (const bool unloaded : {false, true}) {
        fault_injector injector;
        auto options = test::pool_options();
        options.host.injector = &injector;
        options.restart.max_restarts = 0;
        fixture f(options);
        plan p = f.load(axpy_plan());
        std::vector<float> x = numbers(n);
        std::vector<float> y(n);
        injector.poison();
        CHECK_FALSE(await(f.io, p.async_run(from(x), to(y))));
        test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
        if (unloaded)
            CHECK(await(f.io, p.async_unload()));
        else
            p = {};
        CHECK(await(f.io, f.gpu.async_shutdown()));
    }
}

TEST_CASE("runs of a plan with a state that are repeated after a fault keep their order")
{
    fault_injector injector;
    auto options = test::pool_options();
    options.host.injector = &injector;
    options.restart.max_restarts = 100;
    for (const int instances : {1, 3}) {
        fixture f(options);
        const plan p = f.load(counting_plan(), {.instances = instances});
        std::vector<float> x{1, 20, 300, 4000};
        std::vector<float> y(x.size());
        int ended = 0;
        injector.poison();
        for (std::size_t i = 0; i < x.size(); ++i)
            p.with({.retry = retry::idempotent})
                .async_run(from(std::span(&x[i], 1)), to(std::span(&y[i], 1)), [&](error_code ec) {
                    CHECK_FALSE(ec);
                    ++ended;
                });
        test::run_until(f.io, [&] { return ended == 4; });
        CHECK(y == std::vector<float>{11, 31, 331, 4331});
    }
}

TEST_CASE_FIXTURE(fixture, "a device that shuts down ends runs, loads and unloads")
{
    const plan p = load(axpy_plan());
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    std::vector<error_code> ended;
    const auto note = [&](error_code ec) { ended.push_back(ec); };
    p.async_run(from(x), to(y), note);
    gpu.async_load(counting_plan(), [&](error_code ec, const plan&) { ended.push_back(ec); });
    gpu.async_shutdown(note);
    test::run_until(io, [&] { return ended.size() == 3; });
    CHECK(y == expected(x));
    CHECK(await(io, p.async_run(from(x), to(y))).error() == errc::device_stopped);
    CHECK(await(io, gpu.async_load(axpy_plan())).error() == errc::device_stopped);
}

TEST_CASE_FIXTURE(fixture, "abandoning a device leaves no call behind")
{
    const plan p = load(axpy_plan(), {.instances = 1});
    std::vector<float> x = numbers(n);
    std::vector<std::vector<float>> y(20, std::vector<float>(n));
    int ended = 0;
    for (auto& to_here : y)
        p.async_run(from(x), to(to_here), [&](error_code) { ++ended; });
    gpu.async_load(counting_plan(), [&](error_code, const plan&) { ++ended; });
    gpu.async_shutdown(shutdown::abandon, [&](error_code) { ++ended; });
    test::run_until(io, [&] { return ended == 22; });
}

TEST_CASE("an io_context may be destroyed with loads and runs on the way")
{
    plan p;
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    {
        asio::io_context io;
        device gpu = test::make_device(io);
        p = await(io, gpu.async_load(axpy_plan())).value();
        p.async_run(from(x), to(y), [](error_code) { FAIL("the handler must not be called"); });
        gpu.async_load(counting_plan(), [](error_code, const plan&) { FAIL("the handler must not be called"); });
        p.async_unload([](error_code) { FAIL("the handler must not be called"); });
    }
    p = {};
}

TEST_CASE_FIXTURE(fixture, "a cancelled load leaves nothing")
{
    const auto before = live();
    asio::cancellation_signal stop;
    std::optional<error_code> ended;
    gpu.async_load(axpy_plan(),
                   asio::bind_cancellation_slot(stop.slot(), [&](error_code ec, const plan&) { ended = ec; }));
    stop.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK((!*ended || *ended == asio::error::operation_aborted));
    test::run_until(io, [&] { return live() == before; });
}

TEST_CASE_FIXTURE(fixture, "the statistics name a plan and count its bytes")
{
    const plan p = load(axpy_plan());
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    const auto before = await(io, gpu.async_stats()).value();
    REQUIRE(await(io, p.async_run(from(x), to(y))));
    const auto after = await(io, gpu.async_stats()).value();
    CHECK(after.completed == before.completed + 1);
    CHECK(after.bytes_to_device == before.bytes_to_device + n * sizeof(float));
    CHECK(after.bytes_to_host == before.bytes_to_host + n * sizeof(float));
    CHECK(std::ranges::any_of(after.latencies, [](const auto& row) { return row.op == "plan axpy"; }));
}

TEST_CASE_FIXTURE(fixture, "the plans of one name have a row of counters")
{
    const plan p = load(axpy_plan());
    const auto row = [&] {
        const auto s = await(io, gpu.async_stats()).value();
        REQUIRE(s.plans.size() == 1);
        CHECK(s.plans.front().op == "plan axpy");
        return s.plans.front();
    };
    const auto loaded = row();
    CHECK(loaded.completed == 0);
    CHECK(loaded.instances >= 1);
    std::vector<float> x = numbers(n);
    std::vector<float> y(n);
    {
        const plan second = load(axpy_plan());
        CHECK(row().instances == 2 * loaded.instances);
        REQUIRE(await(io, second.async_run(from(x), to(y))));
        REQUIRE(await(io, p.async_run(from(x), to(y))));
        REQUIRE(await(io, second.async_unload()));
    }
    std::vector<float> shorter(n - 1);
    CHECK_FALSE(await(io, p.async_run(from(shorter), to(y))));
    const auto run = row();
    CHECK(run.completed == 2);
    CHECK(run.failed == 1);
    CHECK(run.cancelled + run.expired + run.reruns + run.waiting + run.running + run.quarantined == 0);
    CHECK(run.bytes_to_device == 2 * n * sizeof(float));
    CHECK(run.bytes_to_host == 2 * n * sizeof(float));
    CHECK(run.instances == loaded.instances);
    REQUIRE(await(io, p.async_unload()));
    CHECK(row().completed == 2);
    CHECK(row().instances == 0);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_plan
