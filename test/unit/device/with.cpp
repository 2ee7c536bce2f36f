#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <future>
#include <tuple>
#include <utility>
#include <vector>

namespace test_device_with {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

struct nothing {
    void operator()(native_stream, std::span<float>) const {}
};

TEST_SUITE_BEGIN("device with options");

TEST_CASE("every function that starts ops takes the options of `with`")
{
    asio::io_context io;
    auto gpu = make_device(io);
    std::vector<float> data(4, 1.0f);
    auto x = await(io, gpu.async_upload(data)).value();
    const auto late = gpu.with(within(-1s));
    const memory::fill<float> fill{x, 2.0f};
    const blas::asum<float> sum{.x = x, .n = 4};
    CHECK(late.options().deadline < exec_options::clock::now());
    CHECK(await(io, late.async_exec(fill)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_exec(sum)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_exec(seq(fill, sum))).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_submit(inout(x), nothing{})).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_alloc<float>(4)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_alloc<float>(4, memory_init::zero)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_alloc_managed<float>(4)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_upload(data)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_upload(std::span<const float>(data))).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_download(x)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_download(x.ref())).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_write(x, data)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_write(x.ref(), data)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_read(x, data)).error() == errc::deadline_exceeded);
    CHECK(await(io, late.async_read(x.ref(), data)).error() == errc::deadline_exceeded);
    // The device itself has no deadline.
    CHECK(await(io, gpu.async_exec(sum)).value() == 4.0f);
}

asio::awaitable<result<float>> work(device gpu)
{
    const std::vector<float> data(8, 2.0f);
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.with({.retry = retry::idempotent}).async_upload(data));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.with({.lane = 2}).async_submit(inout(x), nothing{}));
    co_return co_await gpu.with(within(1h)).async_exec(blas::asum<float>{.x = x, .n = 8});
}

TEST_CASE("a coroutine sets the options of each op at its call")
{
    asio::io_context io;
    auto gpu = make_device(io);
    CHECK(test::co_run(io, work(gpu)).value() == 16.0f);
}

TEST_CASE("user functions run concurrently on lanes chosen by the caller")
{
    asio::io_context io;
    auto o = test::pool_options();
    o.context.lanes = lane_policy::single();
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    auto y = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    int ended = 0;
    gpu.with({.lane = 0}).async_submit(inout(x), test::gate_op{&gate}, [&](error_code ec) { ended += !ec; });
    gpu.with({.lane = 1}).async_submit(inout(y), test::gate_op{&gate}, [&](error_code ec) { ended += !ec; });
    // Both run at once, on the two threads of the backend.
    test::run_until(io, [&] { return gate.reached(2); });
    gate.open();
    test::run_until(io, [&] { return ended == 2; });
    CHECK(await(io, gpu.with({.lane = 99}).async_submit(inout(x), nothing{})).error() == errc::invalid_argument);
}

TEST_CASE("the object returned by `with` keeps the device alive like a copy of it")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto quick = gpu.with(within(1h));
    gpu = {};
    io.restart();
    io.poll();
    CHECK(await(io, quick.async_alloc<float>(4)));
    // An empty device completes on a thread of the system executor.
    std::promise<error_code> told;
    auto answer = told.get_future();
    device().with({}).async_alloc<float>(
        4, [told = std::move(told)](error_code ec, buffer<float>) mutable { told.set_value(ec); });
    CHECK(answer.get() == errc::invalid_argument);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_with
