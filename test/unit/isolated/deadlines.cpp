#include "isolated.hpp"

#include <doctest/doctest.h>

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

namespace {

using clock_type = std::chrono::steady_clock;

} // namespace

TEST_SUITE_BEGIN("isolated deadlines");

TEST_CASE("a deadline is kept while the worker is stopped, and the worker goes on when it is continued")
{
    auto o = isolated_options();
    o.worker.heartbeat = 1h;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    // Copied in pieces, by threads.
    const auto large = f.upload(numbers(1'000'000));
    f.send(SIGSTOP);
    const auto begin = clock_type::now();
    CHECK(await(f.io, f.gpu.with(within(100ms)).async_exec(memory::fill<float>{x, 7.0f})).error() ==
          errc::deadline_exceeded);
    CHECK(await(f.io, f.gpu.with(within(100ms)).async_exec(blas::asum<float>{.x = x, .n = 100})).error() ==
          errc::deadline_exceeded);
    CHECK(await(f.io, f.gpu.with(within(100ms)).async_download(x)).error() == errc::deadline_exceeded);
    CHECK(await(f.io, f.gpu.with(within(100ms)).async_download(large)).error() == errc::deadline_exceeded);
    CHECK(await(f.io, f.gpu.with(within(100ms)).async_alloc<float>(10)).error() == errc::deadline_exceeded);
    CHECK(clock_type::now() - begin < 20s);
    auto s = await(f.io, f.gpu.async_stats()).value();
    CHECK(s.in_flight == 5);
    CHECK(s.expired == 5);
    f.send(SIGCONT);
    CHECK(f.download(x.ref()) == std::vector<float>(100, 7.0f));
    CHECK(f.download(large.ref()) == numbers(1'000'000));
    test::run_until(f.io, [&] {
        s = await(f.io, f.gpu.async_stats()).value();
        return s.in_flight == 0 && s.live_buffers == 2;
    });
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("an op that was answered early may be lost with its worker")
{
    auto o = isolated_options();
    o.worker.heartbeat = 1h;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(1'000'000));
    f.send(SIGSTOP);
    CHECK(await(f.io, f.gpu.with(within(50ms)).async_exec(memory::fill<float>{x, 7.0f})).error() ==
          errc::deadline_exceeded);
    CHECK(await(f.io, f.gpu.with(within(50ms)).async_download(x)).error() == errc::deadline_exceeded);
    f.send(SIGKILL);
    f.wait_for_generation(2);
    const auto s = await(f.io, f.gpu.async_stats()).value();
    CHECK(s.in_flight == 0);
    CHECK(s.failed == 0);
    CHECK(s.expired == 2);
}

TEST_CASE("memory of the caller's is waited for until the worker is gone")
{
    auto o = isolated_options();
    o.worker.heartbeat = 500ms;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    f.send(SIGSTOP);
    std::vector<float> mine(100);
    // The bound is the heartbeat: after it, the device is known to have left.
    CHECK(await(f.io, f.gpu.with(within(50ms)).async_read(x, mine)).error() == errc::deadline_exceeded);
    f.wait_for_generation(2);
    CHECK(f.gpu.status().reason == errc::worker_hung);
}

TEST_SUITE_END();
