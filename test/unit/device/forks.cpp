#include "device/blocking_pool.hpp"
#include "support/devices.hpp"
#include "support/forked_child.hpp"
#include "support/gate.hpp"
#include "support/sanitized.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <optional>

namespace test_device_forks {

// A process that forks while it has a device. The device's threads do not exist in the child.

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::error_in_child;
using test::first_mistake;
using test::in_forked_child;
using test::make_device;
using test::never_answered;
using test::notified;
using test::runs_until;
using test::well;

TEST_SUITE_BEGIN("device forks");

TEST_CASE("a device with threads is lost in a forked child, and continues in the parent")
{
    for (const auto knows : {notified::yes, notified::no}) {
        CAPTURE(knows);
        auto io = std::make_unique<asio::io_context>();
        auto gpu = make_device(*io);
        auto x = await(*io, gpu.async_alloc<float>(4, memory_init::zero)).value();
        const int status = in_forked_child(*io, knows, [&]() -> int {
            const auto first = error_in_child(*io, gpu.async_exec(memory::fill<float>{x, 7.0f}));
            if (!first)
                return never_answered;
            if (!is_context_lost(*first) && *first != errc::device_failed)
                return first_mistake;
            const auto second = error_in_child(*io, gpu.async_alloc<float>(4));
            if (second != errc::device_failed)
                return second ? first_mistake + 1 : never_answered + 1;
            if (gpu.status().state != device_state::failed)
                return first_mistake + 2;
            if (!error_in_child(*io, gpu.async_shutdown()))
                return never_answered + 2;
            io.reset();
            return well;
        });
        CHECK(status == well);
        CHECK(await(*io, gpu.async_exec(memory::fill<float>{x, 2.0f})));
        CHECK(await(*io, gpu.async_download(x)).value() == std::vector<float>(4, 2.0f));
    }
}

TEST_CASE("ops in flight at a fork complete in the child, with an error")
{
    for (const auto knows : {notified::yes, notified::no}) {
        CAPTURE(knows);
        asio::io_context io;
        auto gpu = make_device(io);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        test::gate gate;
        std::optional<error_code> started;
        std::optional<error_code> behind;
        gpu.async_submit(inout(x), test::gate_op{&gate}, [&](error_code ec) { started = ec; });
        gpu.async_exec(memory::fill<float>{x, 1.0f}, [&](error_code ec) { behind = ec; });
        test::run_until(io, [&] { return gate.reached(1); });
        const int status = in_forked_child(io, knows, [&]() -> int {
            if (knows == notified::no)
                gpu.async_stats([](error_code, device_stats) {});
            if (!runs_until(io, [&] { return started && behind; }))
                return never_answered;
            return is_context_lost(*started) && is_context_lost(*behind) ? well : first_mistake;
        });
        CHECK(status == well);
        CHECK_FALSE(started);
        gate.open();
        test::run_until(io, [&] { return started && behind; });
        CHECK_FALSE(*started);
        CHECK_FALSE(*behind);
    }
}

TEST_CASE("a forked child may destroy the execution context with its devices")
{
    for (const auto knows : {notified::yes, notified::no}) {
        CAPTURE(knows);
        auto io = std::make_unique<asio::io_context>();
        auto gpu = make_device(*io);
        auto x = await(*io, gpu.async_alloc<float>(4)).value();
        test::gate gate;
        bool ended = false;
        gpu.async_submit(inout(x), test::gate_op{&gate}, [&](error_code) { ended = true; });
        test::run_until(*io, [&] { return gate.reached(1); });
        const int status = in_forked_child(*io, knows, [&]() -> int {
            io.reset();
            x.reset();
            gpu = {};
            return well;
        });
        CHECK(status == well);
        gate.open();
        test::run_until(*io, [&] { return ended; });
    }
}

TEST_CASE("a forked child may create its own devices" * doctest::skip(test::thread_sanitized))
{
    for (const auto knows : {notified::yes, notified::no}) {
        CAPTURE(knows);
        asio::io_context io;
        auto gpu = make_device(io);
        const int status = in_forked_child(io, knows, [&]() -> int {
            asio::io_context own;
            for (asio::io_context* where : {&own, &io}) {
                std::optional<error_code> answer;
                device made;
                device::async_create(where->get_executor(), test::pool_options(), [&](error_code ec, device d) {
                    answer = ec;
                    made = d;
                });
                if (!runs_until(*where, [&] { return answer.has_value(); }))
                    return never_answered;
                if (*answer)
                    return first_mistake;
                if (error_in_child(*where, made.async_alloc<float>(4)) != error_code())
                    return first_mistake + 1;
            }
            return well;
        });
        CHECK(status == well);
        CHECK(await(io, gpu.async_alloc<float>(4)));
    }
}

TEST_CASE("a creation pending at a fork fails in the child, and the child's executor runs out of work")
{
    constexpr int all_threads = 64;
    test::gate gate;
    asio::io_context io;
    // The creation waits for a thread of the pool until the gate is open.
    auto& pool = asio::use_service<detail::blocking_pool>(io);
    for (int i = 0; i < all_threads; ++i)
        pool.run(detail::blocking_pool::kind::contexts, [&] { gate.pass(); });
    gate.wait_for(all_threads);
    std::optional<error_code> answer;
    device made;
    device::async_create(io.get_executor(), test::pool_options(), [&](error_code ec, device d) {
        answer = ec;
        made = d;
    });
    io.poll();
    CHECK_FALSE(answer);
    const int status = in_forked_child(io, notified::yes, [&]() -> int {
        io.restart();
        io.run();
        if (!answer)
            return never_answered;
        return is_context_lost(*answer) ? well : first_mistake;
    });
    CHECK(status == well);
    gate.open();
    test::run_until(io, [&] { return answer.has_value(); });
    CHECK_FALSE(*answer);
}

TEST_CASE("a shutdown pending at a fork completes in the child, and the child's executor runs out of work")
{
    test::gate gate;
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    std::optional<error_code> started;
    std::optional<error_code> stopped;
    gpu.async_submit(inout(x), test::gate_op{&gate}, [&](error_code ec) { started = ec; });
    test::run_until(io, [&] { return gate.reached(1); });
    // The context cannot be closed until the gate is open.
    gpu.async_shutdown(shutdown::abandon, [&](error_code ec) { stopped = ec; });
    test::run_until(io, [&] { return gpu.status().state == device_state::stopping; });
    const int status = in_forked_child(io, notified::yes, [&]() -> int {
        io.restart();
        io.run();
        if (!started || !stopped)
            return never_answered;
        return is_context_lost(*started) && !*stopped ? well : first_mistake;
    });
    CHECK(status == well);
    CHECK_FALSE(started);
    gate.open();
    test::run_until(io, [&] { return started && stopped; });
    CHECK(*started == errc::device_stopped);
    CHECK_FALSE(*stopped);
}

TEST_CASE("a device without threads continues in a forked child")
{
    asio::io_context io;
    auto gpu = make_device(io, test::inline_options());
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    CHECK(in_forked_child(io, notified::yes, [&]() -> int {
              const auto answer = error_in_child(io, gpu.async_exec(memory::fill<float>{x, 7.0f}));
              if (!answer)
                  return never_answered;
              return *answer ? first_mistake : well;
          }) == well);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_forks
