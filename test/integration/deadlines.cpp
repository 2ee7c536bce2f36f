#include "isolated.hpp"

#include <doctest/doctest.h>

namespace test_integration_deadlines {

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

TEST_CASE("deadlines are kept while the worker is stopped, and the worker continues after SIGCONT")
{
    auto o = isolated_options();
    o.worker.heartbeat = 1h;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    // Copied in pieces by copy threads.
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

TEST_CASE("an op whose deadline expired may be lost with its worker without another failure")
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

TEST_CASE("an expired read into the caller's memory completes when the worker has been killed")
{
    auto o = isolated_options();
    o.worker.heartbeat = 500ms;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    f.send(SIGSTOP);
    std::vector<float> mine(100);
    // The heartbeat is the bound: after it, the device no longer accesses the memory.
    CHECK(await(f.io, f.gpu.with(within(50ms)).async_read(x, mine)).error() == errc::deadline_exceeded);
    f.wait_for_generation(2);
    CHECK(f.gpu.status().reason == errc::worker_hung);
}

TEST_SUITE_END();

} // namespace test_integration_deadlines
