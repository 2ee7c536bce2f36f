#include "support/devices.hpp"
#include "support/gate.hpp"
#include "support/tracking.hpp"

#include <coaccel/ops/blas.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <map>

namespace test_device_exec {

namespace {

using namespace coaccel;
using test::await;
using test::make_device;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("device");

asio::awaitable<result<std::vector<float>>> product(device gpu)
{
    const std::vector<float> a{1, 2, 3, 4};
    const std::vector<float> b{5, 6, 7, 8};
    BOOST_OUTCOME_CO_TRY(auto da, co_await gpu.async_upload(a));
    BOOST_OUTCOME_CO_TRY(auto db, co_await gpu.async_upload(b));
    BOOST_OUTCOME_CO_TRY(auto dc, co_await gpu.async_alloc<float>(4));
    BOOST_OUTCOME_CO_TRYV(
        co_await gpu.async_exec(blas::gemm<float>{.a = da, .b = db, .c = dc, .m = 2, .n = 2, .k = 2}));
    co_return co_await gpu.async_download(dc);
}

TEST_CASE("the smallest program runs in every mode and with every strategy")
{
    for (const auto mode : {host_mode::pool, host_mode::inline_}) {
        for (const auto how : {completion::adaptive, completion::host_fn, completion::polled, completion::sync}) {
            auto o = test::pool_options();
            o.host.mode = mode;
            o.context.completion = how;
            asio::io_context io;
            auto out = test::co_run(io, product(make_device(io, o)));
            REQUIRE(out);
            CHECK(out.value() == std::vector<float>{23, 34, 31, 46});
            test::run_out(io);
        }
    }
}

asio::awaitable<result<void>> without_awaiting(device gpu)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc<float>(64, memory_init::zero));
    // Started in order, without waiting for the individual ops.
    for (int i = 0; i < 100; ++i) {
        gpu.async_exec(blas::axpy<float>{.x = x.subspan(0, 32), .y = x.subspan(32, 32), .n = 32}, asio::detached);
        gpu.async_exec(memory::fill<float>{x.subspan(0, 32), static_cast<float>(i)}, asio::detached);
    }
    BOOST_OUTCOME_CO_TRY(auto out, co_await gpu.async_download(x.subspan(32, 32)));
    // 0 + 0 + 1 + ... + 98
    CHECK(out == std::vector<float>(32, 4851.0f));
    co_return success();
}

TEST_CASE("ops on one buffer run in the order in which they were started")
{
    for (const auto lanes :
         {lane_policy::chained(4), lane_policy::per_library(), lane_policy::single(), lane_policy::pooled(4)}) {
        auto o = test::pool_options();
        o.context.lanes = lanes;
        asio::io_context io;
        REQUIRE(test::co_run(io, without_awaiting(make_device(io, o))));
    }
}

TEST_CASE("a seq completes once, with the replies of its ops")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(8)).value();
    auto both = await(io, gpu.async_exec(seq(memory::fill<float>{x, 2.0f}, blas::asum<float>{.x = x, .n = 8},
                                             blas::iamax<float>{.x = x, .n = 8})));
    REQUIRE(both);
    CHECK(std::get<0>(both.value()) == 16.0f);
    CHECK(std::get<1>(both.value()) == 0u);
    CHECK(await(io, gpu.async_exec(seq(memory::fill<float>{x, 2.0f}, memory::fill<float>{x, 3.0f}))));
}

TEST_CASE("operands multiplied by zero are not read")
{
    asio::io_context io;
    auto gpu = make_device(io);
    const std::vector<float> nothing(4, std::numeric_limits<float>::quiet_NaN());
    auto a = await(io, gpu.async_upload(nothing)).value();
    auto c = await(io, gpu.async_upload(nothing)).value();
    CHECK(await(io, gpu.async_exec(blas::gemm<float>{.a = a, .b = a, .c = c, .m = 2, .n = 2, .k = 2, .alpha = 0})));
    CHECK(await(io, gpu.async_exec(blas::gemv<float>{
                        .a = a, .x = a, .y = c.subspan(0, 2), .m = 2, .n = 2, .alpha = 0, .beta = 1})));
    CHECK(await(io, gpu.async_exec(blas::ger<float>{.x = a, .y = a, .a = c, .m = 2, .n = 2, .alpha = 0})));
    CHECK(await(io, gpu.async_exec(blas::axpy<float>{.x = a, .y = c, .n = 4, .alpha = 0})));
    CHECK(await(io, gpu.async_download(c)).value() == std::vector<float>(4, 0.0f));
}

TEST_CASE("write and read transfer data of existing buffers")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<std::int32_t>(4)).value();
    const std::vector<std::int32_t> in{1, 2, 3, 4};
    std::vector<std::int32_t> out(2);
    CHECK(await(io, gpu.async_write(x, in)));
    CHECK(await(io, gpu.async_read(x.subspan(1, 2), out)));
    CHECK(out == std::vector<std::int32_t>{2, 3});
}

TEST_CASE("zero-initialised memory is zero even if it is reused")
{
    asio::io_context io;
    auto gpu = make_device(io);
    for (int i = 0; i < 3; ++i) {
        auto x = await(io, gpu.async_alloc<double>(100, memory_init::zero)).value();
        CHECK(await(io, gpu.async_download(x)).value() == std::vector<double>(100, 0.0));
        CHECK(await(io, gpu.async_exec(memory::fill<double>{x, 7.0})));
    }
}

struct scale_by {
    float factor;
    void operator()(native_stream stream, std::span<const float> from, std::span<float> to) const
    {
        CHECK(stream.backend == "host");
        for (std::size_t i = 0; i < from.size(); ++i)
            to[i] = factor * from[i];
    }
};

struct thrower {
    void operator()(native_stream, std::span<float>) const { throw 1; }
};

TEST_CASE("a user function is ordered and kept alive like any op")
{
    asio::io_context io;
    auto gpu = make_device(io);
    const std::vector<float> data{1, 2, 3};
    auto x = await(io, gpu.async_upload(data)).value();
    auto y = await(io, gpu.async_alloc<float>(3)).value();
    gpu.async_exec(memory::fill<float>{x, 5.0f}, asio::detached);
    CHECK(await(io, gpu.async_submit(in(x), out(y), scale_by{2})));
    CHECK(await(io, gpu.async_download(y)).value() == std::vector<float>{10, 10, 10});
    CHECK(await(io, gpu.async_submit(inout(y), thrower{})).error() == errc::user_exception);
    error_code seen = errc::no_value;
    gpu.async_submit(in(x), out(y), scale_by{3}, [&](error_code ec) { seen = ec; });
    CHECK(await(io, gpu.async_download(y)).value() == std::vector<float>{15, 15, 15});
    CHECK_FALSE(seen);
    CHECK(await(io, gpu.async_submit(in(x.subspan(0, 9)), out(y), scale_by{3})).error() == errc::out_of_bounds);
}

TEST_CASE("every kind of completion token works")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
    const blas::asum<float> op{.x = x, .n = 4};

    bool called = false;
    gpu.async_exec(op, [&](error_code ec, float sum) {
        called = true;
        CHECK_FALSE(ec);
        CHECK(sum == 0.0f);
    });
    CHECK_FALSE(called);
    auto future = gpu.async_exec(op, asio::use_future);
    auto as_tuple = [](device d, blas::asum<float> o) -> asio::awaitable<void> {
        auto [ec, sum] = co_await d.async_exec(o, asio::as_tuple(asio::use_awaitable));
        CHECK_FALSE(ec);
        CHECK(sum == 0.0f);
        CHECK(co_await d.async_exec(o, asio::use_awaitable) == 0.0f);
        o.n = 99;
        CHECK_THROWS_AS((void)co_await d.async_exec(o, asio::use_awaitable), boost::system::system_error);
    };
    test::co_run(io, as_tuple(gpu, op));
    gpu = {};
    x.reset();
    test::run_out(io);
    CHECK(called);
    CHECK(future.get() == 0.0f);
}

TEST_CASE("a handler runs on its executor, outside the initiating call, after its memory is released")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        asio::thread_pool elsewhere(1);
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        test::allocation_count count;
        std::promise<bool> ran_there;
        bool inside = true;
        gpu.async_exec(memory::fill<float>{x, 1.0f},
                       asio::bind_executor(elsewhere.get_executor(),
                                           asio::bind_allocator(test::tracking_allocator<void>(count), [&](error_code) {
                                               CHECK_FALSE(inside);
                                               CHECK(count.live == 0);
                                               ran_there.set_value(elsewhere.get_executor().running_in_this_thread());
                                           })));
        CHECK(count.allocations >= 1);
        inside = false;
        // io has only work on the device's executor left; the op itself keeps the handler's executor alive.
        gpu = {};
        x.reset();
        test::run_out(io);
        CHECK(ran_there.get_future().get());
        elsewhere.join();
    }
}

TEST_CASE("a handler may be bound to a strand of any kind")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    auto plain = asio::make_strand(io);
    auto erased = asio::make_strand(asio::any_io_executor(io.get_executor()));
    int ran = 0;
    gpu.async_exec(memory::fill<float>{x, 1.0f},
                   asio::bind_executor(plain, [&](error_code ec) { ran += !ec && plain.running_in_this_thread(); }));
    gpu.async_exec(memory::fill<float>{x, 1.0f},
                   asio::bind_executor(erased, [&](error_code ec) { ran += !ec && erased.running_in_this_thread(); }));
    test::run_until(io, [&] { return ran == 2; });
}

TEST_CASE("pending ops count as work on both executors")
{
    asio::io_context io;
    asio::io_context handlers;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    bool done = false;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::bind_executor(handlers, [&](error_code) { done = true; }));
    std::thread opener([&] {
        gate.wait_for(1);
        gate.open();
    });
    std::thread device_thread([&] {
        io.restart();
        io.run();
    });
    handlers.run();
    CHECK(done);
    opener.join();
    gpu = {};
    x.reset();
    device_thread.join();
}

TEST_CASE("statistics report the actual memory, counts, state and latencies")
{
    asio::io_context io;
    auto o = test::pool_options();
    o.host.memory_limit = 1 << 20;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(1024)).value();
    for (int i = 0; i < 10; ++i)
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    CHECK_FALSE(await(io, gpu.async_exec(memory::fill<float>{ref<float>(), 1.0f})));
    auto s = await(io, gpu.async_stats()).value();
    CHECK(s.backend == "host");
    CHECK(s.generation == 1);
    CHECK(s.memory.used == 4096);
    CHECK(s.memory.total == 1 << 20);
    CHECK(s.memory.free == (1 << 20) - 4096);
    CHECK(s.live_buffers == 1);
    CHECK(s.completed == 11);
    CHECK(s.failed == 1);
    CHECK(s.restarts == 0);
    CHECK(s.queued == 0);
    CHECK(s.in_flight == 0);
    CHECK(s.state == device_state::ready);
    bool found = false;
    for (const auto& l : s.latencies) {
        if (l.op != "memory.fill<f32>")
            continue;
        found = true;
        CHECK(l.count == 11);
        CHECK(l.p50.count() > 0);
        CHECK(l.p50 <= l.p99);
        CHECK(l.p99 <= l.max);
    }
    CHECK(found);
    test::gate gate;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    test::run_until(io, [&] { return gate.reached(1); });
    CHECK(gpu.status().state == device_state::busy);
    CHECK(await(io, gpu.async_stats()).value().in_flight == 1);
    gate.open();
    x.reset();
    CHECK(await(io, gpu.async_shutdown()));
}

struct leave_alone {
    void operator()(native_stream, std::span<float>) const {}
    void operator()(native_stream, std::span<float>, std::span<float>) const {}
};

TEST_CASE("latencies have one row per name, and an upload is not counted as an allocation")
{
    asio::io_context io;
    auto gpu = make_device(io);
    const std::vector<float> data(16, 1.0f);
    auto x = await(io, gpu.async_upload(data)).value();
    auto y = await(io, gpu.async_alloc<float>(16)).value();
    CHECK(await(io, gpu.async_write(x, data)));
    CHECK(await(io, gpu.async_submit(inout(x), leave_alone{})));
    CHECK(await(io, gpu.async_submit(inout(x), inout(y), leave_alone{})));
    std::map<std::string, std::uint64_t> rows;
    const auto stats = await(io, gpu.async_stats()).value();
    for (const auto& l : stats.latencies) {
        CHECK_FALSE(rows.contains(l.op));
        rows[l.op] = l.count;
    }
    CHECK(rows ==
          std::map<std::string, std::uint64_t>{{"memory.write<f32>", 2}, {"memory.allocate", 1}, {"user.submit", 2}});
}

TEST_CASE("copies take options like other ops")
{
    asio::io_context io;
    auto gpu = make_device(io);
    std::vector<float> data(16, 1.0f);
    auto x = await(io, gpu.async_upload(data)).value();
    const exec_options late = within(-1s);
    CHECK(await(io, gpu.with(late).async_write(x, data)).error() == errc::deadline_exceeded);
    CHECK(await(io, gpu.with(late).async_write(x.ref(), data)).error() == errc::deadline_exceeded);
    CHECK(await(io, gpu.with(late).async_read(x, data)).error() == errc::deadline_exceeded);
    CHECK(await(io, gpu.with(late).async_read(x.ref(), data)).error() == errc::deadline_exceeded);
    CHECK(await(io, gpu.with(late).async_download(x)).error() == errc::deadline_exceeded);
    CHECK(await(io, gpu.with(late).async_download(x.ref())).error() == errc::deadline_exceeded);
    const exec_options in_time = within(1h);
    CHECK(await(io, gpu.with(in_time).async_write(x, data)));
    CHECK(await(io, gpu.with(in_time).async_read(x, data)));
    CHECK(await(io, gpu.with(in_time).async_download(x)).value() == data);
}

TEST_CASE("managed memory is an operand without conversion")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc_managed<float>(16)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 2.0f})));
    CHECK(x.span()[15] == 2.0f);
    CHECK(await(io, gpu.async_submit(inout(x), leave_alone{})));
    CHECK(await(io, gpu.async_exec(blas::asum<float>{.x = x, .n = x.size()})).value() == 32.0f);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_exec
