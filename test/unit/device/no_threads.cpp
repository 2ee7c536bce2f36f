#include "support/no_threads.hpp"

#include "support/devices.hpp"
#include "support/sanitized.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <optional>

namespace test_device_no_threads {

// Behaviour when no thread can be started.

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::no_threads;

TEST_SUITE_BEGIN("device without threads");

int failures = 0;
error_code last_failure;

directive count_failure(const error_code& ec) noexcept
{
    ++failures;
    last_failure = ec;
    return directive::restart;
}

// Sanitizers need additional address space.
#define SKIP_WHEN_SANITIZED()                                                                                          \
    do {                                                                                                               \
        if (test::sanitized)                                                                                           \
            return;                                                                                                    \
    } while (false)

TEST_CASE("a device that gets no thread retries under its restart policy, and starts once it gets one")
{
    SKIP_WHEN_SANITIZED();
    auto o = test::pool_options();
    o.restart.decider = &count_failure;
    o.restart.max_restarts = 1'000'000;
    o.restart.max_backoff = 10ms;
    failures = 0;
    asio::io_context io;
    std::optional<error_code> answer;
    device gpu;
    std::optional<no_threads> none(std::in_place);
    device::async_create(io.get_executor(), o, [&](error_code ec, device d) {
        answer = ec;
        gpu = d;
    });
    test::run_until(io, [] { return failures >= 3; });
    CHECK(last_failure == errc::start_failed);
    CHECK_FALSE(answer);
    none.reset();
    test::run_until(io, [&] { return answer.has_value(); });
    REQUIRE(*answer == error_code());
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
}

TEST_CASE("a device that gets no thread fails with a typed error when its restart policy gives up")
{
    SKIP_WHEN_SANITIZED();
    auto o = test::pool_options();
    o.restart.max_restarts = 2;
    asio::io_context io;
    std::optional<error_code> answer;
    {
        const no_threads none;
        device::async_create(io.get_executor(), o, [&](error_code ec, device) { answer = ec; });
        test::run_until(io, [&] { return answer.has_value(); });
    }
    CHECK(*answer == errc::start_failed);
    test::run_out(io);
    // The next creation is not affected.
    CHECK(await(io, device::async_create(io.get_executor(), o)));
}

TEST_CASE("a completion::sync device works when it can start no thread")
{
    SKIP_WHEN_SANITIZED();
    auto o = test::pool_options();
    o.context.completion = completion::sync;
    asio::io_context io;
    auto gpu = test::make_device(io, o);
    const no_threads none;
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    for (int i = 0; i < 3; ++i)
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})));
    CHECK(gpu.status().generation == 1);
}

TEST_CASE("compiling without a thread is an error of that call only")
{
    SKIP_WHEN_SANITIZED();
    asio::io_context io;
    auto gpu = test::make_device(io);
    const auto compile = [&] { return await(io, gpu.async_compile("", jit::compile_options{})).error(); };
    {
        const no_threads none;
        CHECK(compile() == errc::start_failed);
        CHECK(compile() == errc::start_failed);
    }
    CHECK(compile() != errc::start_failed);
    CHECK(await(io, gpu.async_alloc<float>(4)));
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_no_threads
