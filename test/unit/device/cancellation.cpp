#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <doctest/doctest.h>

#include <vector>

namespace test_device_cancellation {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::make_device;

constexpr asio::cancellation_type types[] = {asio::cancellation_type::total, asio::cancellation_type::partial,
                                             asio::cancellation_type::terminal};

/// A device with room for one op, which waits at a gate.
struct blocked {
    explicit blocked(asio::io_context& context) : io(context)
    {
        auto o = test::pool_options();
        o.queue.max_in_flight = 1;
        gpu = make_device(io, o);
        x = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
        gpu.async_submit(inout(x), test::gate_op{&gate},
                         asio::bind_cancellation_slot(running.slot(), [this](error_code ec) { running_outcome = ec; }));
        test::run_until(io, [this] { return gate.reached(1); });
    }

    asio::io_context& io;
    test::gate gate;
    device gpu;
    buffer<float> x;
    asio::cancellation_signal running;
    error_code running_outcome = errc::no_value;
};

TEST_SUITE_BEGIN("device cancellation");

TEST_CASE("a queued op is cancelled at once and leaves no trace")
{
    for (const auto type : types) {
        asio::io_context io;
        blocked b(io);
        asio::cancellation_signal signal;
        error_code seen = errc::no_value;
        b.gpu.async_exec(memory::fill<float>{b.x, 9.0f},
                         asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { seen = ec; }));
        CHECK(await(io, b.gpu.async_stats()).value().queued == 1);
        signal.emit(type);
        test::run_until(io, [&] { return seen != errc::no_value; });
        CHECK(seen == operation_aborted);
        CHECK(await(io, b.gpu.async_stats()).value().queued == 0);
        b.gate.open();
        CHECK(await(io, b.gpu.async_download(b.x)).value() == std::vector<float>(4, 0.0f));
    }
}

TEST_CASE("a cancelled allocation releases its memory")
{
    asio::io_context io;
    blocked b(io);
    const std::vector<float> data(4096, 1.0f);
    asio::cancellation_signal signal;
    error_code seen = errc::no_value;
    b.gate.open();
    b.gpu.async_upload(data, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, buffer<float> made) {
                           seen = ec;
                           CHECK((ec || made));
                       }));
    signal.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return seen != errc::no_value; });
    CHECK(await(io, b.gpu.async_stats()).value().live_buffers == 1);
}

TEST_CASE("a cancellation signal after completion does nothing")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    asio::cancellation_signal signal;
    int calls = 0;
    gpu.async_exec(memory::fill<float>{x, 9.0f},
                   asio::bind_cancellation_slot(signal.slot(), [&](error_code) { ++calls; }));
    test::run_until(io, [&] { return calls == 1; });
    signal.emit(asio::cancellation_type::all);
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    CHECK(calls == 1);
}

TEST_CASE("cancel() aborts every op accepted before it and no later op")
{
    asio::io_context io;
    blocked b(io);
    std::vector<error_code> seen(3, errc::no_value);
    for (std::size_t i = 0; i < 3; ++i) {
        if (i == 2)
            b.gpu.cancel();
        b.gpu.async_exec(memory::fill<float>{b.x, 1.0f}, [&, i](error_code ec) { seen[i] = ec; });
    }
    b.gate.open();
    test::run_until(io, [&] { return seen[2] != errc::no_value && b.running_outcome != errc::no_value; });
    CHECK(b.running_outcome == operation_aborted);
    CHECK(seen[0] == operation_aborted);
    CHECK(seen[1] == operation_aborted);
    CHECK_FALSE(seen[2]);
    device().cancel();
}

TEST_CASE("waiting for a creation or a shutdown can be cancelled")
{
    asio::io_context io;
    auto o = test::pool_options();
    o.host.faults.refuse_starts = 3;
    o.restart.initial_backoff = 1h;
    o.restart.max_backoff = 1h;
    asio::cancellation_signal signal;
    error_code seen = errc::no_value;
    device::async_create(io.get_executor(), o,
                         asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, device d) {
                             seen = ec;
                             CHECK_FALSE(d);
                         }));
    asio::steady_timer later(io, 5ms);
    later.async_wait([&](error_code) { signal.emit(asio::cancellation_type::terminal); });
    test::run_until(io, [&] { return seen != errc::no_value; });
    CHECK(seen == operation_aborted);
    // The abandoned device must not keep the program running.
    test::run_out(io);

    blocked b(io);
    seen = errc::no_value;
    b.gpu.async_shutdown(asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { seen = ec; }));
    (void)await(io, b.gpu.async_stats());
    signal.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return seen != errc::no_value; });
    CHECK(seen == operation_aborted);
    b.gate.open();
    CHECK(await(io, b.gpu.async_shutdown()));
}

TEST_CASE("a past deadline or one that passes in the queue fails the op, and a distant one does not")
{
    asio::io_context io;
    blocked b(io);
    exec_options past;
    past.deadline = exec_options::clock::now() - 1s;
    CHECK(await(io, b.gpu.with(past).async_exec(memory::fill<float>{b.x, 1.0f})).error() == errc::deadline_exceeded);
    CHECK(await(io, b.gpu.with(within(5ms)).async_exec(memory::fill<float>{b.x, 1.0f})).error() ==
          errc::deadline_exceeded);
    CHECK(b.running_outcome == errc::no_value);
    b.gate.open();
    CHECK(await(io, b.gpu.with(within(1h)).async_exec(memory::fill<float>{b.x, 1.0f})));
}

TEST_CASE("a full device queues ops, and refuses when_full::fail ops")
{
    asio::io_context io;
    auto o = test::pool_options();
    o.queue.max_in_flight = 1;
    o.queue.max_queued = 2;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    test::run_until(io, [&] { return gate.reached(1); });
    exec_options now;
    now.when_full = when_full::fail;
    CHECK(await(io, gpu.with(now).async_exec(memory::fill<float>{x, 1.0f})).error() == errc::queue_full);
    int ended = 0;
    for (int i = 0; i < 2; ++i)
        gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code ec) { ended += !ec; });
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::queue_full);
    gate.open();
    test::run_until(io, [&] { return ended == 2; });
    CHECK(await(io, gpu.with(now).async_exec(memory::fill<float>{x, 1.0f})));
}

asio::awaitable<bool> times_out(device gpu, ref<float> x, test::gate* gate)
{
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
    auto op = gpu.async_submit(inout(x), test::gate_op{gate}, asio::as_tuple(asio::use_awaitable));
    asio::steady_timer opener(timer.get_executor(), 10ms);
    opener.async_wait([gate](error_code) { gate->open(); });
    auto won = co_await (std::move(op) || timer.async_wait(asio::use_awaitable));
    co_return won.index() == 1;
}

TEST_CASE("an op races a timer with the awaitable operators")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    CHECK(test::co_run(io, times_out(gpu, x, &gate)));
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_cancellation
