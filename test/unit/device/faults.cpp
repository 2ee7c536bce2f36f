#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace test_device_faults {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

struct armed {
    explicit armed(device_options o = test::pool_options()) : options(std::move(o))
    {
        options.host.injector = injector.get();
    }

    std::shared_ptr<fault_injector> injector = std::make_shared<fault_injector>();
    device_options options;
};

asio::awaitable<void> follow(watch<device_status> states, std::vector<device_state>& seen)
{
    for (;;) {
        auto next = co_await states.async_changed();
        if (!next)
            co_return;
        seen.push_back(next.value().state);
    }
}

TEST_SUITE_BEGIN("device faults");

TEST_CASE("a rebuild keeps the address: outstanding ops are lost, queued ones run, old refs are stale")
{
    for (const auto how : {completion::adaptive, completion::host_fn, completion::polled, completion::sync}) {
        CAPTURE(static_cast<int>(how));
        armed a;
        a.options.context.completion = how;
        a.options.queue.max_in_flight = 1;
        asio::io_context io;
        auto gpu = make_device(io, a.options);
        auto old = await(io, gpu.async_alloc<float>(4)).value();
        auto generations = gpu.watch_generation();
        CHECK(generations.get() == 1);

        test::gate gate;
        std::vector<error_code> seen(5, errc::no_value);
        std::vector<int> calls(5, 0);
        auto note = [&](std::size_t i) {
            return [&, i](error_code ec, auto&&...) {
                seen[i] = ec;
                ++calls[i];
            };
        };
        gpu.async_submit(inout(old), test::gate_op{&gate}, note(0));
        test::run_until(io, [&] { return gate.reached(1); });
        a.injector->poison();
        gpu.async_exec(memory::fill<float>{old, 1.0f}, note(1));
        // Beyond max_in_flight, so these wait for the next context.
        gpu.async_exec(memory::fill<float>{old, 2.0f}, note(2));
        gpu.async_alloc<float>(8, note(3));
        gpu.async_alloc<float>(8, memory_init::zero, note(4));
        gate.open();

        auto changed = await(io, generations.async_changed());
        REQUIRE(changed);
        CHECK(changed.value() == 2);
        auto fresh = await(io, gpu.async_alloc<float>(4, memory_init::zero));
        REQUIRE(fresh);
        // The op had completed, but the device may not have seen that before the fault.
        CHECK((!seen[0] || seen[0] == errc::context_lost));
        CHECK(seen[1] == errc::context_lost);
        CHECK(seen[2] == errc::stale_ref);
        CHECK_FALSE(seen[3]);
        CHECK_FALSE(seen[4]);
        CHECK(calls == std::vector<int>(5, 1));
        CHECK(await(io, gpu.async_exec(memory::fill<float>{old, 3.0f})).error() == errc::stale_ref);
        CHECK(await(io, gpu.async_download(fresh.value())).value() == std::vector<float>(4, 0.0f));
        const auto s = await(io, gpu.async_stats()).value();
        CHECK(s.restarts == 1);
        CHECK(s.generation == 2);
        CHECK(gpu.status().reason == errc::context_lost);
    }
}

TEST_CASE("every op of a burst completes exactly once across a fault")
{
    for (const auto mode : {host_mode::pool, host_mode::inline_}) {
        armed a(mode == host_mode::pool ? test::pool_options() : test::inline_options());
        asio::io_context io;
        auto gpu = make_device(io, a.options);
        auto x = await(io, gpu.async_alloc<float>(64)).value();
        constexpr int burst = 2000;
        std::vector<int> calls(burst, 0);
        int fine = 0;
        int lost = 0;
        int stale = 0;
        for (int i = 0; i < burst; ++i) {
            if (i == burst / 2)
                a.injector->poison();
            gpu.async_exec(memory::fill<float>{x, 1.0f}, [&, i](error_code ec) {
                ++calls[static_cast<std::size_t>(i)];
                fine += !ec;
                lost += ec == errc::context_lost;
                stale += ec == errc::stale_ref;
            });
        }
        gpu = {};
        x.reset();
        test::run_out(io);
        CHECK(calls == std::vector<int>(burst, 1));
        CHECK(fine + lost + stale == burst);
        CHECK(lost >= 1);
    }
}

TEST_CASE("a spent budget makes the device fail, and then the device refuses ops")
{
    armed a;
    a.options.restart.max_restarts = 1;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    std::vector<device_state> states;
    asio::co_spawn(io, follow(gpu.watch_state(), states), asio::detached);
    for (int i = 0; i < 2; ++i) {
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        a.injector->poison();
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::context_lost);
    }
    CHECK(await(io, gpu.async_alloc<float>(4)).error() == errc::device_failed);
    CHECK(gpu.status().state == device_state::failed);
    CHECK(gpu.status().reason == errc::context_lost);
    CHECK(await(io, gpu.async_stats()).value().state == device_state::failed);
    CHECK(is_device_lost(await(io, gpu.async_alloc<float>(4)).error()));
    CHECK(await(io, gpu.async_shutdown()));
    CHECK(await(io, gpu.async_alloc<float>(4)).error() == errc::device_stopped);
    test::run_out(io);
    REQUIRE(states.size() >= 3);
    CHECK(states.back() == device_state::stopped);
    CHECK(std::ranges::find(states, device_state::failed) != states.end());
}

TEST_CASE("ops that wait for a rebuild that never succeeds complete with device_failed")
{
    armed a;
    a.options.restart.max_restarts = 1;
    a.options.restart.initial_backoff = 20ms;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    a.injector->poison();
    a.injector->refuse_starts(10);
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::context_lost);
    CHECK(await(io, gpu.async_alloc<float>(4)).error() == errc::device_failed);
    CHECK(gpu.status().reason == errc::start_failed);
}

TEST_CASE("a start that is refused a few times succeeds within the budget and fails beyond it")
{
    auto o = test::pool_options();
    o.host.faults.refuse_starts = 3;
    {
        asio::io_context io;
        auto gpu = make_device(io, o);
        CHECK(gpu.status().generation == 1);
    }
    o.restart.max_restarts = 2;
    asio::io_context io;
    auto made = test::co_run(io, test::create(o));
    CHECK(made.error() == errc::start_failed);
    test::run_out(io);
}

TEST_CASE("the generation is published when the new context can be used")
{
    armed a;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    auto use_each_generation = [](device d, int rounds,
                                  std::shared_ptr<fault_injector> faults) -> asio::awaitable<void> {
        auto generations = d.watch_generation();
        for (int i = 0; i < rounds; ++i) {
            auto x = co_await d.async_alloc<float>(4);
            REQUIRE(x);
            faults->poison();
            (void)co_await d.async_exec(memory::fill<float>{x.value(), 1.0f});
            auto g = co_await generations.async_changed();
            REQUIRE(g);
            // Not queued: it must be able to start now.
            auto y = co_await d.async_alloc<float>(4);
            REQUIRE(y);
            exec_options at_once;
            at_once.when_full = when_full::fail;
            auto r = co_await d.with(at_once).async_exec(memory::fill<float>{y.value(), 1.0f});
            CHECK(r);
        }
    };
    test::co_run(io, use_each_generation(gpu, 4, a.injector));
    CHECK(gpu.status().generation == 5);
}

TEST_CASE("a hung op is detected, and its device is rebuilt")
{
    armed a;
    a.options.context.hang_timeout = 20ms;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    a.injector->hang();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::context_lost);
    auto y = await(io, gpu.async_alloc<float>(4));
    REQUIRE(y);
    CHECK(await(io, gpu.async_exec(memory::fill<float>{y.value(), 1.0f})));
}

TEST_CASE("buffers of a dead context can be released at any time")
{
    armed a;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    auto y = await(io, gpu.async_alloc<float>(4)).value();
    a.injector->poison();
    CHECK_FALSE(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    x.reset();
    auto z = await(io, gpu.async_alloc<float>(4)).value();
    y.reset();
    CHECK(await(io, gpu.async_stats()).value().live_buffers == 1);
    CHECK(await(io, gpu.async_shutdown()));
    z.reset();
    test::run_out(io);
}

TEST_CASE("out of memory leaves the device as it was")
{
    auto o = test::pool_options();
    o.host.faults.out_of_memory_at = 4096;
    asio::io_context io;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(512)).value();
    CHECK(await(io, gpu.async_alloc<float>(1024)).error() == errc::out_of_memory);
    CHECK(is_busy(make_error_code(errc::out_of_memory)));
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    CHECK(gpu.status().generation == 1);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_faults
