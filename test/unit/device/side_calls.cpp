#include "support/devices.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace test_device_side_calls {

// Pinned and managed memory, and compilation: requests that do not go through the lanes.
namespace {

using namespace coaccel;
using test::await;

constexpr std::size_t limit = 4096;

device_options limited()
{
    auto o = test::pool_options();
    o.host.pinned_limit = limit;
    return o;
}

using bytes = pinned_buffer<std::uint8_t>;

struct answer {
    std::optional<error_code> ec;
    bytes buffer;

    auto handler()
    {
        return [this](error_code e, bytes b) {
            REQUIRE_FALSE(ec);
            ec = e;
            buffer = std::move(b);
        };
    }
};

jit::compile_options doubling()
{
    jit::compile_options o("twice");
    o.host(+[](const jit::launch_shape& shape, float* x) {
        for (std::uint32_t i = 0; i < shape.block.x; ++i)
            x[i] *= 2;
    });
    return o;
}

TEST_SUITE_BEGIN("device side calls");

TEST_CASE("pinned memory can be written, uploaded and read into")
{
    asio::io_context io;
    auto gpu = test::make_device(io);
    auto made = await(io, gpu.async_alloc_pinned<int>(1000));
    REQUIRE(made);
    auto p = std::move(made).value();
    CHECK(p.size() == 1000);
    CHECK(reinterpret_cast<std::uintptr_t>(p.data()) % 64 == 0);
    for (int i = 0; i < 1000; ++i)
        p[static_cast<std::size_t>(i)] = i;
    auto up = await(io, gpu.async_upload(p));
    REQUIRE(up);
    std::ranges::fill(p, 0);
    CHECK(await(io, gpu.async_read(up.value(), p.span())));
    CHECK(p[999] == 999);
    CHECK(await(io, gpu.async_stats()).value().memory.pinned_used == 4000);
    p.reset();
    CHECK_FALSE(p);
    CHECK(await(io, gpu.async_stats()).value().memory.pinned_used == 0);
}

TEST_CASE("pinned allocations of impossible sizes are refused")
{
    asio::io_context io;
    auto gpu = test::make_device(io, limited());
    CHECK(await(io, gpu.async_alloc_pinned<std::uint8_t>(0)).error() == errc::invalid_argument);
    CHECK(await(io, gpu.async_alloc_pinned<std::uint8_t>(limit + 1)).error() == errc::out_of_memory);
    CHECK(await(io, gpu.async_alloc_pinned<double>(~std::size_t(0) / 4)).error() == errc::size_overflow);
    CHECK(await(io, gpu.async_alloc_pinned<std::uint8_t>(limit)));
}

TEST_CASE("calls beyond the pinned memory limit wait in the order of the calls")
{
    asio::io_context io;
    auto gpu = test::make_device(io, limited());
    auto first = await(io, gpu.async_alloc_pinned<std::uint8_t>(3000));
    REQUIRE(first);
    answer large, small;
    gpu.async_alloc_pinned<std::uint8_t>(4000, large.handler());
    gpu.async_alloc_pinned<std::uint8_t>(10, small.handler());
    REQUIRE(await(io, gpu.async_stats()));
    CHECK_FALSE(large.ec);
    CHECK_FALSE(small.ec);
    first.value().reset();
    test::run_until(io, [&] { return large.ec && small.ec; });
    CHECK_FALSE(*large.ec);
    CHECK_FALSE(*small.ec);
    CHECK(large.buffer.size() == 4000);
    CHECK(small.buffer.size() == 10);
}

TEST_CASE("a call that waits for pinned memory can be cancelled, and then blocks no other call")
{
    asio::io_context io;
    auto gpu = test::make_device(io, limited());
    auto first = await(io, gpu.async_alloc_pinned<std::uint8_t>(3000));
    answer large, small;
    asio::cancellation_signal signal;
    gpu.async_alloc_pinned<std::uint8_t>(4000, asio::bind_cancellation_slot(signal.slot(), large.handler()));
    gpu.async_alloc_pinned<std::uint8_t>(10, small.handler());
    REQUIRE(await(io, gpu.async_stats()));
    signal.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return large.ec && small.ec; });
    CHECK(*large.ec == asio::error::operation_aborted);
    CHECK_FALSE(*small.ec);
}

TEST_CASE("a shutdown completes the calls that wait for pinned memory")
{
    for (const auto how : {shutdown::drain, shutdown::abandon}) {
        asio::io_context io;
        auto gpu = test::make_device(io, limited());
        auto first = await(io, gpu.async_alloc_pinned<std::uint8_t>(limit));
        answer waiting;
        gpu.async_alloc_pinned<std::uint8_t>(1, waiting.handler());
        CHECK(await(io, gpu.async_shutdown(how)));
        REQUIRE(waiting.ec);
        CHECK(*waiting.ec == errc::device_stopped);
        CHECK(await(io, gpu.async_alloc_pinned<std::uint8_t>(1)).error() == errc::device_stopped);
        gpu = {};
        test::run_out(io);
        // It outlives its device.
        std::ranges::fill(first.value(), std::uint8_t{1});
    }
}

TEST_CASE("an io_context may be destroyed with waiting calls")
{
    auto io = std::make_unique<asio::io_context>();
    auto gpu = test::make_device(*io, limited());
    auto first = await(*io, gpu.async_alloc_pinned<std::uint8_t>(limit));
    gpu.async_alloc_pinned<std::uint8_t>(1, [](error_code, bytes) { FAIL("must not be called"); });
    gpu.async_compile("", doubling(), [](error_code, jit::kernel) { FAIL("must not be called"); });
    io.reset();
    first.value()[0] = 1;
}

TEST_CASE("managed memory is accessible to the host and the device")
{
    asio::io_context io;
    auto gpu = test::make_device(io);
    auto made = await(io, gpu.async_alloc_managed<float>(100));
    REQUIRE(made);
    auto m = std::move(made).value();
    std::ranges::fill(m.span(), 3.0f);
    CHECK(await(io, gpu.async_exec(memory::advise<float>{.target = m.ref(), .what = memory::advice::read_mostly})));
    CHECK(await(io, gpu.async_exec(memory::prefetch<float>{.target = m.ref(), .to = memory::place::device})));
    CHECK(await(io, gpu.async_exec(memory::fill<float>{.dst = m.ref(), .value = 4})));
    CHECK(m.span()[99] == 4);
    CHECK(await(io, gpu.async_stats()).value().live_buffers == 1);
    m.reset();
    CHECK(await(io, gpu.async_stats()).value().live_buffers == 0);
    CHECK(await(io, gpu.async_alloc_managed<float>(0)).error() == errc::invalid_argument);
}

TEST_CASE("trimming releases unused memory")
{
    asio::io_context io;
    auto gpu = test::make_device(io);
    REQUIRE(await(io, gpu.async_alloc<float>(1000)));
    CHECK(await(io, gpu.async_exec(memory::trim{})));
}

TEST_CASE("a kernel with a host function is compiled and launched on the CPU")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = test::make_device(io, o);
        auto kernel = await(io, gpu.async_compile("never looked at", doubling()));
        REQUIRE(kernel);
        auto x = await(io, gpu.async_upload(std::vector<float>{1, 2, 3}));
        REQUIRE(x);
        CHECK(await(io, gpu.async_exec(jit::launch(kernel.value(), {.block = {3}}, inout(x.value())))));
        CHECK(await(io, gpu.async_download(x.value())).value() == std::vector<float>{2, 4, 6});
        CHECK(await(io, gpu.async_exec(jit::launch(kernel.value(), {.block = {3}}, in(x.value())))).error() ==
              errc::argument_mismatch);
    }
}

TEST_CASE("a kernel may be destroyed as soon as its launch is started")
{
    asio::io_context io;
    auto gpu = test::make_device(io);
    auto x = await(io, gpu.async_upload(std::vector<float>{1}));
    std::optional<error_code> ended;
    {
        auto kernel = await(io, gpu.async_compile("never looked at", doubling()));
        gpu.async_exec(jit::launch(kernel.value(), {}, inout(x.value())), [&](error_code ec) { ended = ec; });
    }
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK_FALSE(*ended);
}

TEST_CASE("a compilation can be cancelled, and completes once")
{
    asio::io_context io;
    auto gpu = test::make_device(io);
    asio::cancellation_signal signal;
    std::optional<error_code> ended;
    gpu.async_compile("never looked at", doubling(),
                      asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, jit::kernel k) {
                          REQUIRE_FALSE(ended);
                          ended = ec;
                          CHECK(static_cast<bool>(k) == !ec);
                      }));
    signal.emit(asio::cancellation_type::terminal);
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK((!*ended || *ended == asio::error::operation_aborted));
    gpu = {};
    test::run_out(io);
}

TEST_CASE("a draining shutdown waits for a compilation")
{
    asio::io_context io;
    auto gpu = test::make_device(io);
    std::optional<error_code> ended;
    gpu.async_compile("never looked at", doubling(), [&](error_code ec, jit::kernel) { ended = ec; });
    CHECK(await(io, gpu.async_shutdown()));
    REQUIRE(ended);
    CHECK_FALSE(*ended);
    CHECK(await(io, gpu.async_compile("", doubling())).error() == errc::device_stopped);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_side_calls
