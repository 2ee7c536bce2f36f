#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/actor/mailbox.hpp>
#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace test_device_lifetime {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

TEST_SUITE_BEGIN("device lifetime");

TEST_CASE("a draining shutdown runs accepted ops and refuses later ones")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        int fine = 0;
        for (int i = 0; i < 50; ++i)
            gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code ec) { fine += !ec; });
        auto states = gpu.watch_state();
        CHECK(await(io, gpu.async_shutdown()));
        CHECK(fine == 50);
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::device_stopped);
        CHECK(gpu.status().state == device_state::stopped);
        CHECK(await(io, gpu.async_stats()).value().state == device_state::stopped);
        // A late observer still receives the last state.
        auto last = await(io, states.async_changed());
        CHECK(last.value().state == device_state::stopped);
        CHECK(await(io, states.async_changed()).error() == errc::closed);
        x.reset();
        test::run_out(io);
    }
}

// Destroying a handler may destroy a mailbox, which accesses the execution context's list of shutdown hooks. That must
// not happen while the list is being processed.
TEST_CASE("a request that an abandoned device releases late is destroyed with the execution context")
{
    std::optional<asio::io_context> io(std::in_place);
    test::gate gate;
    {
        auto gpu = make_device(*io);
        auto x = await(*io, gpu.async_alloc<float>(4)).value();
        auto box = mailbox<int>::create(io->get_executor(), 1).value();
        gpu.async_submit(inout(x), test::gate_op{&gate}, [box = std::move(box)](error_code) {});
        test::run_until(*io, [&] { return gate.reached(1); });
        gpu.async_shutdown(shutdown::abandon, asio::detached);
        io->poll();
        gate.open();
    }
    io.reset();
}

TEST_CASE("a device works with the largest monitor_interval")
{
    auto o = test::pool_options();
    o.context.monitor_interval = std::chrono::nanoseconds::max();
    asio::io_context io;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
}

TEST_CASE("a burst of ops is accepted at least up to max_in_flight, with either when_full option")
{
    auto o = test::pool_options();
    o.queue.max_in_flight = 4;
    o.queue.max_queued = 1;
    asio::io_context io;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    exec_options impatient;
    impatient.when_full = when_full::fail;
    for (const auto& how : {impatient, exec_options{}}) {
        int fine = 0;
        int full = 0;
        const auto count = [&](error_code ec) { ++(ec == errc::queue_full ? full : fine); };
        for (int i = 0; i < 8; ++i)
            gpu.with(how).async_exec(memory::fill<float>{x, 1.0f}, count);
        test::run_until(io, [&] { return fine + full == 8; });
        CHECK(fine >= 4);
        CHECK(full <= 4);
    }
}

TEST_CASE("an abandoning shutdown completes every op, and running ops when the device has released them")
{
    asio::io_context io;
    auto o = test::pool_options();
    o.queue.max_in_flight = 2;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    std::vector<error_code> seen(4, errc::no_value);
    gpu.async_submit(inout(x), test::gate_op{&gate}, [&](error_code ec) { seen[0] = ec; });
    for (std::size_t i = 1; i < 4; ++i)
        gpu.async_exec(memory::fill<float>{x, 1.0f}, [&, i](error_code ec) { seen[i] = ec; });
    test::run_until(io, [&] { return gate.reached(1); });
    bool stopped = false;
    gpu.async_shutdown(shutdown::abandon, [&](error_code) { stopped = true; });
    test::run_until(io, [&] { return seen[3] != errc::no_value; });
    CHECK(seen[0] == errc::no_value);
    CHECK_FALSE(stopped);
    gate.open();
    test::run_until(io, [&] { return stopped; });
    for (const auto& ec : seen)
        CHECK(ec == errc::device_stopped);
}

TEST_CASE("any number of shutdowns complete, and an abandoning one speeds up a draining one")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    test::run_until(io, [&] { return gate.reached(1); });
    int stopped = 0;
    auto count = [&](error_code ec) { stopped += !ec; };
    gpu.async_shutdown(count);
    gpu.async_shutdown(count);
    gpu.async_shutdown(shutdown::abandon, count);
    gate.open();
    test::run_until(io, [&] { return stopped == 3; });
    CHECK(await(io, gpu.async_shutdown()));
}

TEST_CASE("a device dropped with pending work finishes the work and stops")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        auto states = gpu.watch_state();
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        int fine = 0;
        for (int i = 0; i < 500; ++i)
            gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code ec) { fine += !ec; });
        gpu = {};
        x.reset();
        test::run_out(io);
        CHECK(fine == 500);
        CHECK(states.get().state == device_state::stopped);
    }
}

asio::awaitable<void> hold_on(device gpu, test::gate* gate)
{
    auto x = co_await gpu.async_alloc<float>(1024);
    if (gate)
        (void)co_await gpu.async_submit(inout(x.value()), test::gate_op{gate});
    for (;;)
        (void)co_await gpu.async_exec(memory::fill<float>{x.value(), 1.0f});
}

TEST_CASE("an execution context may be destroyed with ops pending and coroutines suspended on them")
{
    // The leak checker reports objects left behind.
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        for (const int turns : {0, 1, 7, 100}) {
            asio::io_context io;
            auto gpu = make_device(io, o);
            for (int i = 0; i < 20; ++i)
                asio::co_spawn(io, hold_on(gpu, nullptr), asio::detached);
            io.restart();
            for (int i = 0; i < turns; ++i)
                io.run_one_for(10ms);
        }
    }
}

TEST_CASE("an execution context may be destroyed while an op runs and while contexts are made")
{
    test::gate gate;
    std::thread opener;
    {
        asio::io_context io;
        auto gpu = make_device(io);
        asio::co_spawn(io, hold_on(gpu, &gate), asio::detached);
        test::run_until(io, [&] { return gate.reached(1); });
        opener = std::thread([&] { gate.open(); });
    }
    opener.join();
    {
        asio::io_context io;
        device::async_create(io.get_executor(), test::pool_options(), [](error_code, device) { CHECK(false); });
        io.poll_one();
    }
    {
        asio::io_context io;
        (void)device::async_create(io.get_executor(), test::pool_options());
    }
}

TEST_CASE("buffers, watches and handles may outlive the execution context")
{
    device gpu;
    buffer<float> x;
    std::optional<watch<device_status>> states;
    {
        asio::io_context io;
        gpu = make_device(io);
        x = await(io, gpu.async_alloc<float>(4)).value();
        states = gpu.watch_state();
    }
    // Only new operations need an execution context.
    CHECK(states->get().state == device_state::ready);
    CHECK(gpu.status().generation == 1);
    gpu.cancel();
    x.reset();
    gpu = {};
}

TEST_CASE("a buffer may be released after the shutdown")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    CHECK(await(io, gpu.async_shutdown()));
    x.reset();
    // The io_context is destroyed before it has processed the release.
}

asio::awaitable<bool> options_in_place()
{
    const auto ex = co_await asio::this_coro::executor;
    fault_injector faults;
    auto made = co_await device::async_create(
        ex, device_options{.kind = device_kind::host, .host = {.mode = host_mode::inline_, .injector = &faults}});
    auto plain = co_await device::async_create(ex);
    co_return made.has_value() && plain.has_value();
}

TEST_CASE("options can be written in place or omitted")
{
    asio::io_context io;
    CHECK(test::co_run(io, options_in_place()));
    test::run_out(io);
}

TEST_CASE("a handler that throws does not affect other handlers")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        int others = 0;
        for (int i = 0; i < 10; ++i)
            gpu.async_exec(memory::fill<float>{x, 1.0f}, [&, i](error_code) {
                if (i % 3 == 0)
                    throw i;
                ++others;
            });
        int thrown = 0;
        io.restart();
        while (thrown + others < 10) {
            try {
                io.run_one();
            } catch (int) {
                ++thrown;
            }
        }
        CHECK(thrown == 4);
        CHECK(others == 6);
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    }
}

TEST_CASE("an empty device answers with an error")
{
    std::promise<error_code> told;
    device().async_alloc<float>(4, [&](error_code ec, buffer<float>) { told.set_value(ec); });
    CHECK(told.get_future().get() == errc::invalid_argument);
    CHECK(device().status().state == device_state::stopped);
    CHECK_FALSE(device());
}

asio::awaitable<void> worker(device gpu, int rounds, std::atomic<int>* right)
{
    std::vector<double> data(32);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<double>(i);
    for (int i = 0; i < rounds; ++i) {
        auto x = co_await gpu.async_upload(data);
        if (!x)
            co_return;
        auto sum = co_await gpu.async_exec(blas::asum<double>{.x = x.value(), .n = data.size()});
        if (sum && sum.value() == 496.0)
            right->fetch_add(1);
    }
}

TEST_CASE("one io_context run by many threads serves several devices")
{
    asio::io_context io;
    std::vector<device> devices;
    for (const auto& o : {test::pool_options(), test::inline_options(), test::pool_options()})
        devices.push_back(make_device(io, o));
    std::atomic<int> right{0};
    for (int i = 0; i < 24; ++i)
        asio::co_spawn(io, worker(devices[static_cast<std::size_t>(i) % 3], 50, &right), asio::detached);
    devices.clear();
    io.restart();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { io.run(); });
    for (auto& t : threads)
        t.join();
    CHECK(right == 24 * 50);
}

TEST_CASE("a device works on a thread_pool")
{
    asio::thread_pool pool(3);
    std::atomic<int> right{0};
    auto main = [](std::atomic<int>* r) -> asio::awaitable<void> {
        const auto ex = co_await asio::this_coro::executor;
        auto gpu = co_await device::async_create(ex, test::pool_options());
        REQUIRE(gpu);
        co_await worker(gpu.value(), 100, r);
    };
    for (int i = 0; i < 4; ++i)
        asio::co_spawn(pool, main(&right), asio::detached);
    pool.join();
    CHECK(right == 400);
}

TEST_CASE("a device refuses refs of another device")
{
    asio::io_context io;
    auto one = make_device(io);
    auto two = make_device(io);
    auto x = await(io, one.async_alloc<float>(4)).value();
    CHECK(await(io, two.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::wrong_device);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_lifetime
