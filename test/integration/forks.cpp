#include "isolated.hpp"
#include "support/forked_child.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

namespace test_integration_forks {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::error_in_child;
using test::first_mistake;
using test::in_forked_child;
using test::isolated_fixture;
using test::isolated_options;
using test::never_answered;
using test::notified;
using test::numbers;
using test::runs_until;
using test::well;

namespace {

bool is_lost(const std::optional<error_code>& ec)
{
    return ec && (is_context_lost(*ec) || is_device_lost(*ec) || *ec == errc::device_failed || *ec == errc::stale_ref);
}

} // namespace

TEST_SUITE_BEGIN("isolated forks");

TEST_CASE("in a forked child a device is lost, and its parent's device is unaffected")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options();
        o.standby = standby;
        isolated_fixture f(o);
        auto x = f.upload(numbers(100));
        auto y = f.upload(numbers(100));
        const int worker = f.process();
        const int status = in_forked_child(f.io, notified::yes, [&]() -> int {
            const auto first = error_in_child(f.io, f.gpu.async_exec(memory::fill<float>{x, 7.0f}));
            if (!first)
                return never_answered;
            if (!is_context_lost(*first))
                return first_mistake;
            // No new context is made here, so no request may wait for one.
            const auto second = error_in_child(f.io, f.gpu.async_exec(memory::fill<float>{x, 8.0f}));
            if (!is_lost(second))
                return second ? first_mistake + 1 : never_answered + 1;
            const auto third = error_in_child(f.io, f.gpu.async_alloc<float>(10));
            if (!is_lost(third))
                return third ? first_mistake + 2 : never_answered + 2;
            const auto fourth = error_in_child(f.io, f.gpu.async_download(y));
            if (!is_lost(fourth))
                return fourth ? first_mistake + 3 : never_answered + 3;
            if (f.gpu.status().state != device_state::failed)
                return first_mistake + 4;
            return well;
        });
        CHECK(status == well);
        CHECK(f.download(x.ref()) == numbers(100));
        CHECK(f.process() == worker);
        CHECK(f.gpu.status().generation == 1);
    }
}

TEST_CASE("a forked child may destroy a device and its buffers in any order")
{
    isolated_fixture f;
    auto x = f.upload(numbers(100));
    auto pinned = await(f.io, f.gpu.async_alloc_pinned<float>(100)).value();
    const int worker = f.process();
    SUBCASE("the buffers are destroyed first")
    {
        CHECK(in_forked_child(f.io, notified::yes, [&]() -> int {
                  x.reset();
                  pinned = {};
                  f.gpu = {};
                  f.work.reset();
                  f.io.restart();
                  f.io.run_for(5s);
                  return f.io.stopped() ? well : never_answered;
              }) == well);
    }
    SUBCASE("the device is destroyed first")
    {
        CHECK(in_forked_child(f.io, notified::yes, [&]() -> int {
                  f.gpu = {};
                  f.work.reset();
                  f.io.restart();
                  f.io.run_for(5s);
                  const bool ended = f.io.stopped();
                  x.reset();
                  pinned = {};
                  return ended ? well : never_answered;
              }) == well);
    }
    SUBCASE("the device is shut down")
    {
        CHECK(in_forked_child(f.io, notified::yes, [&]() -> int {
                  return error_in_child(f.io, f.gpu.async_shutdown()) ? well : never_answered;
              }) == well);
    }
    SUBCASE("the device is used, then shut down")
    {
        CHECK(in_forked_child(f.io, notified::yes, [&]() -> int {
                  if (!is_lost(error_in_child(f.io, f.gpu.async_exec(memory::fill<float>{x, 7.0f}))))
                      return first_mistake;
                  return error_in_child(f.io, f.gpu.async_shutdown()) ? well : never_answered;
              }) == well);
    }
    CHECK(f.process() == worker);
    CHECK(f.download(x.ref()) == numbers(100));
    // The child released its own state: the memory is still shared and in use here.
    std::ranges::fill(pinned, 3.0f);
    CHECK(await(f.io, f.gpu.async_write(x, std::span<const float>(pinned))));
    CHECK(f.download(x.ref()) == std::vector<float>(100, 3.0f));
}

TEST_CASE("a forked child may destroy its whole copy of a device that was busy before")
{
    for (const bool used : {false, true}) {
        CAPTURE(used);
        auto o = isolated_options();
        o.standby = 1;
        auto f = std::make_unique<isolated_fixture>(o);
        // Large data is copied by threads, which the child does not have.
        const auto data = numbers(4'000'000);
        auto x = f->upload(data);
        const int worker = f->process();
        const int status = in_forked_child(f->io, notified::yes, [&]() -> int {
            if (used && !is_lost(error_in_child(f->io, f->gpu.async_download(x))))
                return first_mistake;
            if (used && !is_lost(error_in_child(f->io, f->gpu.async_upload(data))))
                return first_mistake + 1;
            x.reset();
            f.reset();
            return well;
        });
        CHECK(status == well);
        CHECK(f->download(x.ref()) == data);
        CHECK(f->process() == worker);
    }
}

TEST_CASE("a device that waits for its next worker during a fork is lost in the child")
{
    auto o = isolated_options();
    o.restart.initial_backoff = o.restart.max_backoff = 2s;
    isolated_fixture f(o);
    const auto data = numbers(10);
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::rebuilding; });
    std::optional<error_code> waited;
    f.gpu.async_upload(data, [&](error_code ec, auto&&...) { waited = ec; });
    f.io.restart();
    f.io.poll();
    REQUIRE_FALSE(waited);
    const int status = in_forked_child(f.io, notified::yes, [&]() -> int {
        if (!is_lost(error_in_child(f.io, f.gpu.async_alloc<float>(10))))
            return first_mistake;
        if (!runs_until(f.io, [&] { return waited.has_value(); }))
            return never_answered;
        return is_lost(waited) && error_in_child(f.io, f.gpu.async_shutdown()) ? well : first_mistake + 1;
    });
    CHECK(status == well);
    // The parent's wait completes too, after its time.
    test::run_until(f.io, [&] { return waited.has_value(); });
    CHECK_FALSE(*waited);
    CHECK(f.gpu.status().generation == 2);
}

TEST_CASE("a forked child cannot create isolated devices and gets an error")
{
    isolated_fixture f;
    auto o = isolated_options();
    o.restart.max_restarts = 1;
    const int status = in_forked_child(f.io, notified::yes, [&]() -> int {
        const auto ec = error_in_child(f.io, device::async_create(f.io.get_executor(), o));
        if (!ec)
            return never_answered;
        return is_lost(ec) || *ec == errc::start_failed ? well : first_mistake;
    });
    CHECK(status == well);
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_CASE("ops in flight during a fork are lost in the child and succeed in the parent")
{
    auto o = isolated_options();
    o.host.faults.delay = 5ms;
    isolated_fixture f(o);
    const auto x = f.upload(numbers(100));
    int good = 0;
    int lost = 0;
    int all = 0;
    for (int i = 0; i < 20; ++i)
        f.gpu.async_exec(memory::fill<float>{x, static_cast<float>(i)}, [&](error_code ec) {
            ++all;
            good += !ec;
            lost += is_context_lost(ec);
        });
    f.io.restart();
    f.io.poll();
    REQUIRE(all < 20);
    const int before = all;
    const int status = in_forked_child(f.io, notified::yes, [&]() -> int {
        if (!runs_until(f.io, [&] { return all == 20; }))
            return never_answered;
        // Detects a second completion.
        f.io.restart();
        f.io.run_for(50ms);
        return all == 20 && lost == 20 - before ? well : first_mistake;
    });
    CHECK(status == well);
    test::run_until(f.io, [&] { return all == 20; });
    CHECK(good == 20);
    CHECK(f.download(x.ref()) == std::vector<float>(100, 19.0f));
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("a fork in the middle of copies does not affect them")
{
    isolated_fixture f;
    const auto data = numbers(8'000'000);
    std::vector<float> back(data.size());
    const auto x = f.upload(data);
    // Forks at a different point of the copies each time.
    for (int turns = 0; turns < 12; ++turns) {
        CAPTURE(turns);
        int all = 0;
        int good = 0;
        const auto count = [&](error_code ec, auto&&...) {
            ++all;
            good += !ec;
        };
        std::ranges::fill(back, 0.0f);
        f.gpu.async_write(x, std::span<const float>(data), count);
        f.gpu.async_read(x, std::span<float>(back), count);
        f.io.restart();
        for (int n = 0; n < turns * turns; ++n)
            f.io.poll_one();
        // Copy threads may be inside a call of Asio, so the child can only exit or execute another program.
        const auto child = ::fork();
        if (child == 0)
            ::_exit(well);
        test::run_until(f.io, [&] { return all == 2; });
        CHECK(good == 2);
        CHECK(back == data);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("a worker is replaced in the parent while a forked child has its copy of the device")
{
    auto o = isolated_options();
    o.standby = 1;
    isolated_fixture f(o);
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    const auto child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::close(pipe[1]);
        char c = 0;
        ::_exit(::read(pipe[0], &c, 1) == 0 ? well : first_mistake);
    }
    ::close(pipe[0]);
    REQUIRE(child > 0);
    for (generation g = 2; g < 5; ++g) {
        f.send(SIGKILL);
        f.wait_for_generation(g);
        CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
    }
    ::close(pipe[1]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_SUITE_END();

} // namespace test_integration_forks
