#include "inventory.hpp"
#include "isolated.hpp"
#include "worker_programs.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

namespace test_integration_endings {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::inventory;
using test::isolated_options;
using test::numbers;
using test::slow_program;
using test::worker_log;

namespace {

using clock_type = std::chrono::steady_clock;

/// Much longer than killing a process takes, much shorter than a worker may take to start.
constexpr auto promptly = 8s;

/// The start timeout: a worker that is waited for fails soon, any other would start forever.
constexpr std::chrono::nanoseconds patience(bool wanted)
{
    return wanted ? std::chrono::nanoseconds(300ms) : std::chrono::nanoseconds(1h);
}

constexpr int asked = 10;

/// A device whose worker has ended and whose next worker will not become ready.
class restarting {
public:
    explicit restarting(int standby, std::chrono::nanoseconds start_timeout)
    {
        auto o = isolated_options();
        o.standby = standby;
        o.worker.program = program.path();
        o.worker.start_timeout = start_timeout;
        o.restart.max_restarts = standby + 2;
        gpu = test::make_device(io, o);
        program.be_slow();
        // Standbys take over quickly.
        for (int i = 0; i <= standby; ++i) {
            test::run_until(io, [&] { return gpu.status().generation == generation(1 + i); });
            REQUIRE(::kill(await(io, gpu.async_stats()).value().hardware.process, SIGKILL) == 0);
        }
        test::run_until(io, [&] {
            return gpu.status().generation == generation(1 + standby) &&
                   gpu.status().state == device_state::rebuilding && worker_log::has(program.sign());
        });
    }

    void ask()
    {
        for (int i = 0; i < asked; ++i)
            gpu.async_upload(data, [this, held = held](error_code ec, auto&&...) {
                ++answers;
                stopped += ec == errc::device_stopped;
                failed += ec == errc::device_failed;
            });
        io.restart();
        io.poll();
    }

    const slow_program program;
    const std::vector<float> data = numbers(10);
    // Each handler holds a reference.
    const std::shared_ptr<int> held = std::make_shared<int>(0);
    int answers = 0;
    int stopped = 0;
    int failed = 0;
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
    device gpu;
};

/// Runs the function, and checks that it leaks nothing and returns in time.
template <class Function>
void leaves_nothing(Function function)
{
    // Objects that are created once and kept exist after the first device.
    {
        test::isolated_fixture f;
    }
    const auto before = inventory::take();
    const auto begin = clock_type::now();
    function();
    CHECK(clock_type::now() - begin < promptly);
    CHECK(inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

} // namespace

TEST_SUITE_BEGIN("isolated endings");

TEST_CASE("the last handle may be destroyed while the next worker starts")
{
    for (const int standby : {0, 1})
        for (const bool busy : {false, true}) {
            CAPTURE(standby);
            CAPTURE(busy);
            leaves_nothing([&] {
                restarting r(standby, patience(busy));
                if (busy)
                    r.ask();
                r.gpu = {};
                r.work.reset();
                test::run_out(r.io);
                CHECK(r.answers == (busy ? asked : 0));
                CHECK(r.stopped + r.failed == r.answers);
            });
        }
}

TEST_CASE("a device may be shut down while the next worker starts")
{
    for (const int standby : {0, 1})
        for (const auto mode : {shutdown::drain, shutdown::abandon}) {
            CAPTURE(standby);
            CAPTURE(static_cast<int>(mode));
            leaves_nothing([&] {
                restarting r(standby, patience(mode == shutdown::drain));
                r.ask();
                CHECK(await(r.io, r.gpu.async_shutdown(mode)));
                CHECK(r.gpu.status().state == device_state::stopped);
                r.work.reset();
                test::run_out(r.io);
                CHECK(r.answers == asked);
                CHECK((mode == shutdown::abandon ? r.stopped : r.stopped + r.failed) == asked);
                CHECK(await(r.io, r.gpu.async_alloc<float>(1)).error() == errc::device_stopped);
            });
        }
}

TEST_CASE("the execution context may be destroyed while the next worker starts")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        leaves_nothing([&] {
            std::shared_ptr<int> held;
            {
                restarting r(standby, patience(false));
                r.ask();
                held = r.held;
                CHECK(held.use_count() == asked + 2);
            }
            CHECK(held.use_count() == 1);
        });
    }
}

TEST_CASE("the last handle and then the execution context may be destroyed while the next worker starts")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        leaves_nothing([&] {
            restarting r(standby, patience(false));
            r.gpu = {};
            r.io.restart();
            r.io.poll();
        });
    }
}

TEST_CASE("the execution context may be destroyed while the first worker starts")
{
    leaves_nothing([] {
        const auto held = std::make_shared<int>(0);
        const slow_program program;
        program.be_slow();
        auto o = isolated_options();
        o.worker.program = program.path();
        o.worker.start_timeout = patience(false);
        {
            asio::io_context io{1};
            device::async_create(io.get_executor(), o, [held](error_code, device) {});
            test::run_until(io, [&] { return worker_log::has(program.sign()); });
        }
        CHECK(held.use_count() == 1);
    });
}

TEST_CASE("a standby that is not ready yet delays neither ops nor the shutdown")
{
    leaves_nothing([] {
        auto o = isolated_options();
        const slow_program program;
        o.worker.program = program.path();
        o.standby = 1;
        asio::io_context io{1};
        auto gpu = test::make_device(io, o);
        program.be_slow();
        REQUIRE(await(io, gpu.async_replace()));
        test::run_until(io, [&] { return worker_log::has(program.sign()); });
        CHECK(await(io, gpu.async_upload(numbers(10))));
        CHECK(await(io, gpu.async_shutdown()));
        gpu = {};
        test::run_out(io);
    });
}

TEST_CASE("a device in its back-off can be ended immediately")
{
    enum class how { drop, drain, abandon, context };
    for (const auto end : {how::drop, how::drain, how::abandon, how::context}) {
        CAPTURE(static_cast<int>(end));
        leaves_nothing([&] {
            auto o = isolated_options();
            o.restart.initial_backoff = o.restart.max_backoff = 1h;
            asio::io_context io{1};
            auto gpu = test::make_device(io, o);
            REQUIRE(::kill(await(io, gpu.async_stats()).value().hardware.process, SIGKILL) == 0);
            auto work = asio::make_work_guard(io);
            test::run_until(io, [&] { return gpu.status().state == device_state::rebuilding; });
            work.reset();
            int answers = 0;
            const auto data = numbers(10);
            if (end == how::abandon || end == how::context)
                gpu.async_upload(data, [&](error_code ec, auto&&...) {
                    CHECK(ec == errc::device_stopped);
                    ++answers;
                });
            if (end == how::context)
                return;
            if (end == how::drop) {
                gpu = {};
            } else {
                CHECK(await(io, gpu.async_shutdown(end == how::drain ? shutdown::drain : shutdown::abandon)));
                CHECK(answers == (end == how::abandon));
            }
            test::run_out(io);
        });
    }
}

TEST_CASE("a device whose workers refuse to start can be ended between two attempts")
{
    leaves_nothing([] {
        fault_injector injector;
        auto o = isolated_options();
        o.host.injector = &injector;
        o.restart.max_restarts = 1'000'000;
        o.restart.initial_backoff = o.restart.max_backoff = 0ms;
        test::isolated_fixture f(o);
        injector.refuse_starts(1'000'000);
        f.send(SIGKILL);
        test::run_until(f.io, [&] { return f.gpu.status().reason == errc::start_failed; });
        int answers = 0;
        const auto data = numbers(10);
        for (int i = 0; i < asked; ++i)
            f.gpu.async_upload(data, [&](error_code ec, auto&&...) {
                CHECK(ec == errc::device_stopped);
                ++answers;
            });
        CHECK(await(f.io, f.gpu.async_shutdown(shutdown::abandon)));
        CHECK(answers == asked);
    });
}

TEST_SUITE_END();

} // namespace test_integration_endings
