#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <vector>

namespace test_device_replace {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::make_device;

/// A device with an op that waits at a gate, and room for others.
struct blocked {
    auto note(error_code& where)
    {
        return [&where](error_code ec, auto&&...) {
            CHECK(where == errc::no_value);
            where = ec;
        };
    }

    explicit blocked(asio::io_context& context, std::uint64_t room = 1, int restarts = 5) : io(context)
    {
        options.host.injector = injector.get();
        options.queue.max_in_flight = room;
        options.restart.max_restarts = restarts;
        gpu = make_device(io, options);
        x = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
        y = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
        gpu.async_submit(inout(x), test::gate_op{&gate}, note(running));
        test::run_until(io, [this] { return gate.reached(1); });
    }

    /// Runs until the device has processed all earlier requests.
    void settle() { CHECK(await(io, gpu.async_stats())); }

    error_code outcome(const error_code& where)
    {
        test::run_until(io, [&] { return where != errc::no_value; });
        return where;
    }

    asio::io_context& io;
    std::shared_ptr<fault_injector> injector = std::make_shared<fault_injector>();
    device_options options = test::pool_options();
    test::gate gate;
    device gpu;
    buffer<float> x;
    buffer<float> y;
    error_code running = errc::no_value;
    error_code replaced = errc::no_value;
};

TEST_SUITE_BEGIN("device replace");

TEST_CASE("an idle device gets a new context at each replacement")
{
    for (auto options : {test::pool_options(), test::inline_options()}) {
        options.restart.max_restarts = 1;
        asio::io_context io;
        auto gpu = make_device(io, options);
        auto generations = gpu.watch_generation();
        auto old = await(io, gpu.async_upload(std::vector<float>{1, 2, 3})).value();
        for (generation g = 2; g < 12; ++g) {
            REQUIRE(await(io, gpu.async_replace()));
            CHECK(gpu.status() == device_status{device_state::ready, g, {}});
            CHECK(generations.get() == g);
            CHECK(await(io, gpu.async_download(old)).error() == errc::stale_ref);
            old = await(io, gpu.async_upload(std::vector<float>{1, 2, static_cast<float>(g)})).value();
            CHECK(await(io, gpu.async_download(old)).value() == std::vector<float>{1, 2, static_cast<float>(g)});
        }
    }
}

TEST_CASE("ops started before the call succeed, and ops started after it wait for the new context")
{
    asio::io_context io;
    blocked b(io);
    error_code before = errc::no_value;
    error_code stale = errc::no_value;
    error_code fresh = errc::no_value;
    error_code pinned = errc::no_value;
    error_code impatient = errc::no_value;
    const std::vector<float> data(4, 1.0f);
    b.gpu.async_upload(data, b.note(before));
    b.gpu.async_replace(b.note(b.replaced));
    b.gpu.async_exec(memory::fill<float>{b.y, 1.0f}, b.note(stale));
    b.gpu.async_alloc<float>(4, memory_init::zero, b.note(fresh));
    b.gpu.async_alloc_pinned<float>(4, b.note(pinned));
    b.gpu.with({.when_full = when_full::fail}).async_alloc<float>(4, b.note(impatient));
    CHECK(b.outcome(impatient) == errc::queue_full);
    b.settle();
    CHECK(b.gpu.status().state == device_state::rebuilding);
    CHECK(b.gpu.status().generation == 1);
    for (const auto& ec : {b.running, before, stale, fresh, pinned, b.replaced})
        CHECK(ec == errc::no_value);
    b.gate.open();
    CHECK_FALSE(b.outcome(b.replaced));
    CHECK(b.gpu.status().generation == 2);
    CHECK_FALSE(b.outcome(b.running));
    CHECK_FALSE(b.outcome(before));
    CHECK(b.outcome(stale) == errc::stale_ref);
    CHECK_FALSE(b.outcome(fresh));
    CHECK_FALSE(b.outcome(pinned));
    CHECK(b.gpu.status().state == device_state::ready);
}

TEST_CASE("ops queued before the call run on the old context, later ops on the new one")
{
    for (const std::uint64_t room : {1u, 2u}) {
        CAPTURE(room);
        asio::io_context io;
        blocked b(io, room);
        constexpr int each = 20;
        std::vector<generation> before;
        std::vector<generation> after;
        int filled = 0;
        int stale = 0;
        const auto made_in = [](std::vector<generation>& where) {
            return [&where](error_code ec, const buffer<float>& made) {
                CHECK_FALSE(ec);
                where.push_back(made.ref().raw().generation);
            };
        };
        // All wait for the op at the gate, which uses their buffer or occupies the room.
        for (int i = 0; i < each; ++i) {
            b.gpu.async_exec(memory::fill<float>{b.x, static_cast<float>(i)}, [&](error_code ec) { filled += !ec; });
            b.gpu.async_exec(seq(memory::fill<float>{b.x, 1.0f}), [&](error_code ec) { filled += !ec; });
            b.gpu.async_alloc<float>(4, made_in(before));
        }
        b.gpu.async_replace(b.note(b.replaced));
        for (int i = 0; i < each; ++i) {
            b.gpu.async_exec(memory::fill<float>{b.x, 1.0f}, [&](error_code ec) { stale += ec == errc::stale_ref; });
            b.gpu.async_alloc<float>(4, made_in(after));
        }
        b.settle();
        CHECK(filled == 0);
        CHECK(stale == 0);
        b.gate.open();
        CHECK_FALSE(b.outcome(b.replaced));
        // The old context is closed only after all its requests have completed.
        CHECK(filled == 2 * each);
        CHECK(before == std::vector<generation>(each, 1));
        test::run_until(io, [&] { return after.size() == each && stale == each; });
        CHECK(after == std::vector<generation>(each, 2));
        CHECK_FALSE(b.outcome(b.running));
        CHECK(b.gpu.status().generation == 2);
    }
}

TEST_CASE("under load only ops with refs to the old context fail")
{
    for (const auto& options : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = make_device(io, options);
        constexpr int clients = 64;
        constexpr int rounds = 20;
        int ended = 0;
        int right = 0;
        int stale = 0;
        auto client = [&](device d, int id) -> asio::awaitable<void> {
            for (int n = 0; n < rounds; ++n) {
                const std::vector<float> data(32, static_cast<float>(id * rounds + n));
                auto x = co_await d.async_upload(data);
                REQUIRE(x);
                auto back = co_await d.async_download(x.value());
                if (back) {
                    CHECK(back.value() == data);
                    ++right;
                } else {
                    CHECK(back.error() == errc::stale_ref);
                    ++stale;
                }
            }
            ++ended;
        };
        int replaced = 0;
        auto replacer = [&](device d) -> asio::awaitable<void> {
            do {
                auto r = co_await d.async_replace();
                CHECK(r);
                ++replaced;
            } while (ended < clients);
        };
        for (int i = 0; i < clients; ++i)
            asio::co_spawn(io, client(gpu, i), asio::detached);
        asio::co_spawn(io, replacer(gpu), asio::detached);
        test::run_until(io, [&] { return ended == clients; });
        CHECK(right + stale == clients * rounds);
        gpu = {};
        test::run_out(io);
        CHECK(replaced >= 1);
    }
}

TEST_CASE("calls made before a replacement begins share it")
{
    asio::io_context io;
    blocked b(io);
    error_code second = errc::no_value;
    b.gpu.async_replace(b.note(b.replaced));
    b.settle();
    b.gpu.async_replace(b.note(second));
    b.settle();
    b.gate.open();
    CHECK_FALSE(b.outcome(b.replaced));
    CHECK_FALSE(b.outcome(second));
    CHECK(b.gpu.status().generation == 2);
    CHECK(await(io, b.gpu.async_alloc<float>(4)));
    CHECK(b.gpu.status().generation == 2);
}

TEST_CASE("a shutdown takes precedence over a replacement that has not begun")
{
    for (const auto mode : {shutdown::drain, shutdown::abandon}) {
        asio::io_context io;
        blocked b(io);
        error_code queued = errc::no_value;
        error_code stopped = errc::no_value;
        b.gpu.async_exec(memory::fill<float>{b.y, 1.0f}, b.note(queued));
        b.gpu.async_replace(b.note(b.replaced));
        b.gpu.async_shutdown(mode, b.note(stopped));
        CHECK(b.outcome(b.replaced) == errc::device_stopped);
        b.gate.open();
        CHECK_FALSE(b.outcome(stopped));
        if (mode == shutdown::drain)
            CHECK_FALSE(b.outcome(queued));
        else
            CHECK(b.outcome(queued) == errc::device_stopped);
        CHECK(b.gpu.status().generation == 1);
        CHECK(await(io, b.gpu.async_replace()).error() == errc::device_stopped);
    }
}

TEST_CASE("a device can be shut down at any moment of a replacement")
{
    for (int turns = 0; turns < 8; ++turns)
        for (const auto mode : {shutdown::drain, shutdown::abandon}) {
            CAPTURE(turns);
            asio::io_context io;
            auto gpu = make_device(io);
            error_code replaced = errc::no_value;
            error_code queued = errc::no_value;
            gpu.async_replace([&](error_code ec) { replaced = ec; });
            gpu.async_alloc<float>(4, [&](error_code ec, buffer<float>) { queued = ec; });
            io.restart();
            for (int n = 0; n < turns; ++n)
                io.run_one_for(1ms);
            CHECK(await(io, gpu.async_shutdown(mode)));
            CHECK((!replaced || replaced == errc::device_stopped));
            CHECK((!queued || (mode == shutdown::abandon && queued == errc::device_stopped)));
            test::run_out(io);
        }
}

TEST_CASE("the last handle and the execution context may be destroyed during a replacement")
{
    asio::io_context io;
    {
        blocked b(io);
        b.gpu.async_replace(b.note(b.replaced));
        b.gpu = {};
        CHECK(b.outcome(b.replaced) == errc::device_stopped);
        b.gate.open();
        CHECK_FALSE(b.outcome(b.running));
        b.x.reset();
        b.y.reset();
        test::run_out(io);
    }
    auto held = std::make_shared<int>(0);
    for (int turns = 0; turns < 6; ++turns) {
        asio::io_context other;
        auto gpu = make_device(other);
        gpu.async_replace([held](error_code) {});
        other.restart();
        for (int n = 0; n < turns; ++n)
            other.run_one_for(1ms);
    }
    CHECK(held.use_count() == 1);
}

TEST_CASE("a fault during the drain is handled like any other and completes the call")
{
    asio::io_context io;
    blocked b(io, 8);
    error_code faulted = errc::no_value;
    error_code queued = errc::no_value;
    b.injector->poison();
    b.gpu.async_exec(memory::fill<float>{b.x, 1.0f}, b.note(faulted));
    b.settle();
    b.gpu.async_replace(b.note(b.replaced));
    b.gpu.async_alloc<float>(4, b.note(queued));
    b.settle();
    b.gate.open();
    CHECK_FALSE(b.outcome(b.replaced));
    CHECK(b.outcome(faulted) == errc::context_lost);
    CHECK_FALSE(b.outcome(queued));
    CHECK(b.gpu.status().generation == 2);
    CHECK(b.gpu.status().reason == errc::context_lost);
    CHECK(b.gpu.status().state == device_state::ready);
}

TEST_CASE("a fault during the drain that exceeds the restart budget fails the call")
{
    asio::io_context io;
    blocked b(io, 8, 0);
    error_code faulted = errc::no_value;
    error_code queued = errc::no_value;
    b.injector->poison();
    b.gpu.async_exec(memory::fill<float>{b.x, 1.0f}, b.note(faulted));
    b.settle();
    b.gpu.async_replace(b.note(b.replaced));
    b.gpu.async_alloc<float>(4, b.note(queued));
    b.settle();
    b.gate.open();
    CHECK(b.outcome(b.replaced) == errc::device_failed);
    CHECK(b.outcome(faulted) == errc::context_lost);
    CHECK(b.outcome(queued) == errc::device_failed);
    CHECK(await(io, b.gpu.async_replace()).error() == errc::device_failed);
}

TEST_CASE("a call that is cancelled completes at once, and the replacement continues")
{
    for (const auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        asio::io_context io;
        blocked b(io);
        asio::cancellation_signal signal;
        b.gpu.async_replace(asio::bind_cancellation_slot(signal.slot(), b.note(b.replaced)));
        b.settle();
        signal.emit(type);
        CHECK(b.outcome(b.replaced) == operation_aborted);
        CHECK(b.running == errc::no_value);
        auto generations = b.gpu.watch_generation();
        b.gate.open();
        CHECK(await(io, generations.async_changed()).value() == 2);
    }
}

TEST_CASE("a refused context fails the call with the reason, and the restart policy continues")
{
    asio::io_context io;
    auto o = test::pool_options();
    fault_injector injector;
    o.host.injector = &injector;
    o.restart.max_restarts = 2;
    auto gpu = make_device(io, o);
    injector.refuse_starts(2);
    CHECK(await(io, gpu.async_replace()).error() == errc::start_failed);
    CHECK(await(io, gpu.async_alloc<float>(4)));
    CHECK(gpu.status().generation == 2);
    injector.refuse_starts(10);
    CHECK(await(io, gpu.async_replace()).error() == errc::start_failed);
    CHECK(await(io, gpu.async_alloc<float>(4)).error() == errc::device_failed);
    CHECK(await(io, gpu.async_replace()).error() == errc::device_failed);
    CHECK(await(io, gpu.async_shutdown()));
}

TEST_CASE("an empty device refuses a replacement")
{
    std::promise<error_code> told;
    device().async_replace([&](error_code ec) { told.set_value(ec); });
    CHECK(told.get_future().get() == errc::invalid_argument);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_replace
