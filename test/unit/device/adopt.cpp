#include "support/devices.hpp"
#include "support/gate.hpp"
#include "support/told.hpp"

#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace test_device_adopt {

// Buffers over memory of the caller, on the host backend.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

/// Memory that notes when its owner is destroyed, and on which thread.
struct owned {
    std::shared_ptr<void> owner()
    {
        return {this, [](void* self) { static_cast<owned*>(self)->end(); }};
    }

    void end()
    {
        thread = std::this_thread::get_id();
        destroyed.add();
    }

    alignas(16) float data[4]{1, 2, 3, 4};
    test::told destroyed;
    std::thread::id thread;
};

std::vector<device_options> both_modes()
{
    return {test::pool_options(), test::inline_options()};
}

TEST_SUITE_BEGIN("device adopt");

TEST_CASE("ops use the caller's memory in place")
{
    for (const auto& o : both_modes()) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        owned m;
        auto x = await(io, gpu.async_adopt(m.data, 4, nullptr)).value();
        CHECK(x.size() == 4);
        CHECK(await(io, gpu.async_download(x)).value() == std::vector<float>{1, 2, 3, 4});
        CHECK(await(io, gpu.async_exec(memory::fill<float>{.dst = x.subspan(1, 2), .value = 9})));
        CHECK(std::vector<float>(m.data, m.data + 4) == std::vector<float>{1, 9, 9, 4});
        CHECK(await(io, gpu.async_stats()).value().live_buffers == 1);
        x.reset();
        CHECK(await(io, gpu.async_stats()).value().live_buffers == 0);
        CHECK(m.data[0] == 1);
    }
}

TEST_CASE("wrong arguments are refused, with the field and the value")
{
    asio::io_context io;
    auto gpu = make_device(io);
    alignas(16) float data[4]{};
    const auto refusal = [&](float* p, std::size_t n) { return await(io, gpu.async_adopt(p, n, nullptr)).error(); };
    CHECK(refusal(nullptr, 4) == errc::invalid_argument);
    CHECK(refusal(nullptr, 4).message() == "memory.adopt: pointer is null");
    CHECK(refusal(data, 0) == errc::invalid_argument);
    CHECK(refusal(data, 0).message() == "memory.adopt: count is 0");
    CHECK(refusal(data, ~std::size_t(0)) == errc::size_overflow);
    auto* odd = reinterpret_cast<float*>(reinterpret_cast<char*>(data) + 1);
    CHECK(refusal(odd, 1) == errc::invalid_argument);
    CHECK(refusal(odd, 1).message().find(" is not a multiple of 4, the size of f32") != std::string::npos);
    // Its answer comes on another thread.
    std::promise<error_code> told;
    device().async_adopt(data, 4, nullptr, [&](error_code ec, const buffer<float>&) { told.set_value(ec); });
    CHECK(told.get_future().get() == errc::invalid_argument);
}

TEST_CASE("the owner is destroyed after the release and the last op, on another thread if there are threads")
{
    for (const auto& o : both_modes()) {
        const bool pool = o.host.mode == host_mode::pool;
        asio::io_context io;
        auto gpu = make_device(io, o);
        owned m;
        auto x = await(io, gpu.async_adopt(m.data, 4, m.owner())).value();
        test::gate gate;
        if (!pool)
            gate.open();
        error_code ended = errc::no_value;
        gpu.async_submit(inout(x), test::gate_op{&gate}, [&](error_code ec) { ended = ec; });
        test::run_until(io, [&] { return gate.reached(1); });
        x.reset();
        CHECK(await(io, gpu.async_stats()));
        if (pool)
            CHECK(m.destroyed.count() == 0);
        gate.open();
        test::run_until(io, [&] { return m.destroyed.count() == 1; });
        test::run_until(io, [&] { return ended != errc::no_value; });
        CHECK_FALSE(ended);
        // With threads, a deleter that blocks does not block the executor.
        CHECK((m.thread == std::this_thread::get_id()) == !pool);
        gpu = {};
        test::run_out(io);
        CHECK(m.destroyed.count() == 1);
    }
}

TEST_CASE("an adoption that is refused, cancelled or never delivered gives its owner back")
{
    asio::io_context io;
    auto gpu = make_device(io);
    owned refused, dropped;
    CHECK(await(io, gpu.async_adopt(refused.data, 0, refused.owner())).error() == errc::invalid_argument);
    CHECK(refused.destroyed.count() == 1);
    // The buffer is destroyed unused by its handler.
    gpu.async_adopt(dropped.data, 4, dropped.owner(), [](error_code, buffer<float>) {});
    test::run_until(io, [&] { return dropped.destroyed.count() == 1; });
    CHECK(await(io, gpu.async_shutdown()));
    owned late;
    CHECK(await(io, gpu.async_adopt(late.data, 4, late.owner())).error() == errc::device_stopped);
    CHECK(late.destroyed.count() == 1);
}

TEST_CASE("after a replacement the buffer is stale, its owner is gone, and the memory can be adopted again")
{
    for (const auto& o : both_modes()) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        owned m;
        auto x = await(io, gpu.async_adopt(m.data, 4, m.owner())).value();
        CHECK(await(io, gpu.async_replace()));
        m.destroyed.wait_for(1);
        CHECK(await(io, gpu.async_download(x)).error() == errc::stale_ref);
        owned again;
        auto y = await(io, gpu.async_adopt(again.data, 4, again.owner())).value();
        CHECK(await(io, gpu.async_download(y)).value() == std::vector<float>{1, 2, 3, 4});
        x.reset();
        y.reset();
        test::run_until(io, [&] { return again.destroyed.count() == 1; });
        CHECK(m.destroyed.count() == 1);
    }
}

TEST_CASE("after a fault the owner is destroyed when no op uses the memory any more")
{
    auto injector = std::make_shared<fault_injector>();
    auto o = test::pool_options();
    o.host.injector = injector.get();
    asio::io_context io;
    auto gpu = make_device(io, o);
    owned m;
    auto x = await(io, gpu.async_adopt(m.data, 4, m.owner())).value();
    auto z = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    error_code slow = errc::no_value;
    error_code poisoned = errc::no_value;
    gpu.with({.lane = 0}).async_submit(inout(x), test::gate_op{&gate}, [&](error_code ec) { slow = ec; });
    test::run_until(io, [&] { return gate.reached(1); });
    injector->poison();
    gpu.with({.lane = 1}).async_exec(memory::fill<float>{.dst = z, .value = 1}, [&](error_code ec) { poisoned = ec; });
    x.reset();
    io.restart();
    io.run_for(20ms);
    // The function is still running.
    CHECK(m.destroyed.count() == 0);
    gate.open();
    test::run_until(io, [&] { return slow != errc::no_value && poisoned != errc::no_value; });
    CHECK(slow == errc::context_lost);
    m.destroyed.wait_for(1);
    CHECK(await(io, gpu.async_alloc<float>(4)));
}

TEST_CASE("a stopped device has destroyed the owners of buffers that are still there")
{
    for (const auto& o : both_modes()) {
        asio::io_context io;
        auto gpu = make_device(io, o);
        owned m;
        auto x = await(io, gpu.async_adopt(m.data, 4, m.owner())).value();
        CHECK(await(io, gpu.async_shutdown()));
        CHECK(m.destroyed.count() == 1);
    }
}

TEST_CASE("an owner may use its execution context while that is destroyed")
{
    for (const auto& o : both_modes()) {
        owned m;
        buffer<float> x;
        std::optional<asio::io_context> io(std::in_place);
        {
            auto gpu = make_device(*io, o);
            // Destroying a device accesses the execution context's list of shutdown hooks.
            auto other = std::make_shared<device>(make_device(*io, o));
            const std::shared_ptr<void> owner(&m, [other](void* self) { static_cast<owned*>(self)->end(); });
            x = await(*io, gpu.async_adopt(m.data, 4, owner)).value();
        }
        io.reset();
        CHECK(m.destroyed.count() == 1);
        x.reset();
    }
}

TEST_CASE("the host backend has no events of other code")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    int event = 0;
    const auto waits = await(io, gpu.async_exec(interop::wait_event<float>{.event = &event, .data = x})).error();
    CHECK(waits == errc::unsupported_op);
    CHECK(waits.message() == "interop.wait_event<f32>: the host backend does not implement it");
    CHECK(await(io, gpu.async_exec(interop::record_event<float>{.event = &event, .data = x})).error() ==
          errc::unsupported_op);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_adopt
