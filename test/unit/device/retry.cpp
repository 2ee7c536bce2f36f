#include "support/devices.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace test_device_retry {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::make_device;

constexpr exec_options again{.retry = retry::idempotent};

std::vector<float> numbers(std::size_t n, float first = 0)
{
    std::vector<float> v(n);
    std::iota(v.begin(), v.end(), first);
    return v;
}

struct armed {
    explicit armed(device_options o = test::pool_options()) : options(o)
    {
        options.host.injector = injector.get();
        options.restart.jitter = 0;
    }

    std::shared_ptr<fault_injector> injector = std::make_shared<fault_injector>();
    device_options options;
};

/// A device whose rebuild is due in an hour, and an upload that waits for it.
struct waiting_again {
    explicit waiting_again(asio::io_context& context, exec_options how = again) : io(context)
    {
        a.options.restart.initial_backoff = 1h;
        a.options.restart.max_backoff = 1h;
        gpu = make_device(io, a.options);
        a.injector->poison();
        gpu.with(how).async_upload(data,
                                   asio::bind_cancellation_slot(signal.slot(), [this](error_code ec, buffer<float>) {
                                       seen = ec;
                                       ++calls;
                                   }));
        test::run_until(io, [this] { return gpu.status().state == device_state::rebuilding; });
        CHECK(calls == 0);
    }

    ~waiting_again()
    {
        if (gpu)
            CHECK(await(io, gpu.async_shutdown(shutdown::abandon)));
        CHECK(calls <= 1);
    }

    error_code outcome()
    {
        test::run_until(io, [this] { return calls > 0; });
        return seen;
    }

    asio::io_context& io;
    armed a;
    device gpu;
    std::vector<float> data = numbers(64);
    asio::cancellation_signal signal;
    error_code seen = errc::no_value;
    int calls = 0;
};

TEST_SUITE_BEGIN("device retry");

TEST_CASE("an idempotent upload survives the loss of its context")
{
    for (const auto& options : {test::pool_options(), test::inline_options()}) {
        armed a(options);
        asio::io_context io;
        auto gpu = make_device(io, a.options);
        const auto data = numbers(1000);
        a.injector->poison();
        auto x = await(io, gpu.with({.retry = retry::idempotent}).async_upload(data));
        REQUIRE(x);
        CHECK(a.injector->played() == 1);
        CHECK(x.value().ref().raw().generation == 2);
        CHECK(await(io, gpu.async_download(x.value())).value() == data);
        const auto s = await(io, gpu.async_stats()).value();
        CHECK(s.generation == 2);
        CHECK(s.failed == 0);
        CHECK(s.completed == 2);
        CHECK(s.in_flight == 0);
        CHECK(s.queued == 0);
        CHECK(s.live_buffers == 1);
    }
}

TEST_CASE("every form of an upload and an allocation takes options, with any token")
{
    asio::io_context io;
    auto gpu = make_device(io);
    const auto data = numbers(8);
    auto check = [](device d, std::vector<float> v) -> asio::awaitable<void> {
        auto a = co_await d.with({.retry = retry::idempotent}).async_upload(v);
        auto b = co_await d.with({.retry = retry::idempotent}).async_upload(std::span<const float>(v));
        auto c = co_await d.with(again).async_upload(std::span(v), asio::use_awaitable);
        exec_options how = again;
        auto e = co_await d.with(how).async_upload(v);
        auto f = co_await d.with({.retry = retry::idempotent}).async_alloc<float>(4);
        auto g = co_await d.with(how).async_alloc<float>(4, memory_init::zero, asio::use_awaitable);
        REQUIRE((a && b && e && f));
        CHECK(c.size() == v.size());
        auto zeros = co_await d.async_download(g);
        REQUIRE(zeros);
        CHECK(zeros.value() == std::vector<float>(4, 0.0f));
    };
    test::co_run(io, check(gpu, data));
    CHECK(await(io, gpu.with({.deadline = exec_options::clock::time_point::min()}).async_upload(data)).error() ==
          errc::deadline_exceeded);
    CHECK(await(io, gpu.with({.lane = 99}).async_alloc<float>(1)).error() == errc::invalid_argument);
}

TEST_CASE("an allocation with a fill is run again as a whole")
{
    armed a;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    a.injector->poison();
    auto x = await(io, gpu.with(again).async_alloc<float>(16, memory_init::zero));
    REQUIRE(x);
    CHECK(x.value().ref().raw().generation == 2);
    CHECK(await(io, gpu.async_download(x.value())).value() == std::vector<float>(16, 0.0f));
}

TEST_CASE("an op that is not idempotent, or uses a lost buffer, is not run again")
{
    armed a;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    const auto data = numbers(4);
    a.injector->poison();
    CHECK(await(io, gpu.async_upload(data)).error() == errc::context_lost);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    a.injector->poison();
    CHECK(await(io, gpu.with(again).async_exec(memory::fill<float>{x, 1.0f})).error() == errc::context_lost);
    CHECK(a.injector->played() == 2);
}

TEST_CASE("a burst of idempotent uploads is complete and correct across faults")
{
    for (const auto& options : {test::pool_options(), test::inline_options()}) {
        armed a(options);
        a.options.restart.max_restarts = 1000;
        asio::io_context io;
        auto gpu = make_device(io, a.options);
        constexpr std::size_t burst = 300;
        std::vector<std::vector<float>> data;
        std::vector<int> calls(burst, 0);
        for (std::size_t i = 0; i < burst; ++i)
            data.push_back(numbers(16, static_cast<float>(i)));
        std::uint64_t lost = 0;
        auto one = [](device d, const std::vector<float>& v, int& ended, std::uint64_t& l) -> asio::awaitable<void> {
            auto x = co_await d.with(again).async_upload(v);
            ++ended;
            if (!x) {
                CHECK(x.error() == errc::context_lost);
                ++l;
                co_return;
            }
            auto back = co_await d.async_download(x.value());
            if (back)
                CHECK(back.value() == v);
            else
                CHECK((back.error() == errc::context_lost || back.error() == errc::stale_ref));
        };
        for (std::size_t i = 0; i < burst; ++i) {
            if (i % 100 == 50)
                a.injector->poison();
            asio::co_spawn(io, one(gpu, data[i], calls[i], lost), asio::detached);
            io.restart();
            io.poll();
        }
        const auto all_ended = [&] { return calls == std::vector<int>(burst, 1); };
        test::run_until(io, all_ended);
        // Only one that was alone when its context died is not repeated.
        CHECK(lost == await(io, gpu.async_stats()).value().convicted);
        CHECK(lost < a.injector->played());
        gpu = {};
        test::run_out(io);
        CHECK(all_ended());
        CHECK(a.injector->played() >= 1);
    }
}

TEST_CASE("an op that waits to be run again can be cancelled")
{
    asio::io_context io;
    waiting_again w(io);
    CHECK(await(io, w.gpu.async_stats()).value().queued == 1);
    SUBCASE("by its own signal")
    {
        w.signal.emit(asio::cancellation_type::total);
        CHECK(w.outcome() == operation_aborted);
    }
    SUBCASE("by cancel()")
    {
        w.gpu.cancel();
        CHECK(w.outcome() == operation_aborted);
    }
    const auto s = await(io, w.gpu.async_stats()).value();
    CHECK(s.queued == 0);
    CHECK(s.in_flight == 0);
    CHECK(s.failed == 0);
    CHECK(s.cancelled == 1);
}

TEST_CASE("the deadline of an op that waits to be run again still applies")
{
    asio::io_context io;
    // Long enough for a loaded machine to lose the context first.
    auto how = within(1s);
    how.retry = retry::idempotent;
    waiting_again w(io, how);
    CHECK(w.outcome() == errc::deadline_exceeded);
}

TEST_CASE("an idempotent op survives a context lost while its device drains")
{
    for (const auto& options : {test::pool_options(), test::inline_options()}) {
        armed a(options);
        asio::io_context io;
        auto gpu = make_device(io, a.options);
        const auto data = numbers(1000);
        a.injector->poison();
        error_code uploaded = errc::no_value;
        error_code stopped = errc::no_value;
        std::uint32_t generation = 0;
        gpu.with(again).async_upload(data, [&](error_code ec, buffer<float> x) {
            uploaded = ec;
            generation = x.ref().raw().generation;
            // The device stops only after its last op.
            CHECK(stopped == errc::no_value);
        });
        gpu.async_shutdown(shutdown::drain, [&](error_code ec) { stopped = ec; });
        test::run_until(io, [&] { return stopped != errc::no_value; });
        CHECK_FALSE(stopped);
        CHECK_FALSE(uploaded);
        CHECK(generation == 2);
        CHECK(a.injector->played() == 1);
        CHECK(gpu.status().state == device_state::stopped);
    }
}

TEST_CASE("an idempotent op is not run again when its device is abandoned")
{
    armed a;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    const auto data = numbers(1000);
    a.injector->poison();
    error_code uploaded;
    gpu.with(again).async_upload(data, [&](error_code ec, buffer<float>) { uploaded = ec; });
    CHECK(await(io, gpu.async_shutdown(shutdown::abandon)));
    test::run_until(io, [&] { return bool(uploaded); });
    CHECK(gpu.status().generation == 1);
}

TEST_CASE("an op that waits to be run again completes when the device stops")
{
    asio::io_context io;
    waiting_again w(io);
    CHECK(await(io, w.gpu.async_shutdown(shutdown::abandon)));
    CHECK(w.outcome() == errc::device_stopped);
}

TEST_CASE("an op that waits to be run again is destroyed with its execution context")
{
    auto held = std::make_shared<int>(0);
    const auto data = numbers(4);
    {
        armed a;
        asio::io_context io;
        a.options.restart.initial_backoff = 1h;
        a.options.restart.max_backoff = 1h;
        auto gpu = make_device(io, a.options);
        a.injector->poison();
        gpu.with(again).async_upload(data, [held](error_code, buffer<float>) { FAIL("must not be called"); });
        test::run_until(io, [&] { return gpu.status().state == device_state::rebuilding; });
        CHECK(held.use_count() == 2);
    }
    CHECK(held.use_count() == 1);
}

TEST_CASE("an op that kills a second context is not tried again, and the device goes on")
{
    armed a;
    a.injector = std::make_shared<fault_injector>(host_faults{.poison_every = 1});
    a.options.host.injector = a.injector.get();
    a.options.restart.max_restarts = 1;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    const auto data = numbers(4);
    // Each time the budget is as it was before.
    for (std::uint64_t i = 1; i <= 3; ++i) {
        const auto ec = await(io, gpu.with(again).async_upload(data)).error();
        CHECK(ec == errc::context_lost);
        CHECK(ec.message().find("it ended the context while nothing else was on it") != std::string::npos);
        CHECK(a.injector->played() == 2 * i);
        test::run_until(io, [&] { return gpu.status().state == device_state::ready; });
        CHECK(gpu.status().generation == 2 * i + 1);
        const auto s = await(io, gpu.async_stats()).value();
        CHECK(s.failed == i);
        CHECK(s.convicted == i);
        CHECK(s.reruns == i);
    }
}

TEST_CASE("an op that was cancelled while it ran is not run again")
{
    armed a;
    a.options.context.hang_timeout = 50ms;
    asio::io_context io;
    auto gpu = make_device(io, a.options);
    const auto data = numbers(4);
    asio::cancellation_signal signal;
    error_code seen = errc::no_value;
    a.injector->hang();
    gpu.with(again).async_upload(
        data, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, buffer<float>) { seen = ec; }));
    test::run_until(io, [&] { return a.injector->played() == 1; });
    signal.emit(asio::cancellation_type::terminal);
    test::run_until(io, [&] { return seen != errc::no_value; });
    CHECK(seen == operation_aborted);
    CHECK(a.injector->played() == 1);
    CHECK(await(io, gpu.async_stats()).value().queued == 0);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_retry
