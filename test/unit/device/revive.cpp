#include "support/devices.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <utility>
#include <vector>

namespace test_device_revive {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::make_device;

/// A device whose restart budget can be used up.
struct mortal {
    explicit mortal(int restarts = 0) : mortal(test::pool_options().restart, restarts) {}

    mortal(restart_policy policy, int restarts)
    {
        auto o = test::pool_options();
        o.host.injector = &injector;
        o.restart = policy;
        o.restart.max_restarts = restarts;
        o.restart.jitter = 0;
        gpu = make_device(io, o);
    }
    mortal(const mortal&) = delete;
    mortal& operator=(const mortal&) = delete;

    /// Loses the current context.
    void die()
    {
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        injector.poison();
        CHECK(await(io, gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::context_lost);
    }

    void fail()
    {
        die();
        test::run_until(io, [this] { return gpu.status().state == device_state::failed; });
    }

    fault_injector injector;
    asio::io_context io;
    device gpu;
};

TEST_SUITE_BEGIN("device revive");

TEST_CASE("a failed device is revived at the same address")
{
    mortal m;
    auto old = await(m.io, m.gpu.async_alloc<float>(4)).value();
    auto states = m.gpu.watch_state();
    m.fail();
    CHECK(await(m.io, m.gpu.async_alloc<float>(4)).error() == errc::device_failed);
    CHECK(await(m.io, m.gpu.async_revive()));
    CHECK(m.gpu.status().state == device_state::ready);
    CHECK(m.gpu.status().generation == 2);
    CHECK(states.get().state == device_state::ready);
    auto x = await(m.io, m.gpu.async_upload(std::vector<float>(4, 5.0f))).value();
    CHECK(await(m.io, m.gpu.async_download(x)).value() == std::vector<float>(4, 5.0f));
    CHECK(await(m.io, m.gpu.async_exec(memory::fill<float>{old, 1.0f})).error() == errc::stale_ref);
}

TEST_CASE("a revived device has a new restart budget")
{
    mortal m(1);
    m.die();
    test::run_until(m.io, [&] { return m.gpu.status().generation == 2; });
    m.fail();
    for (generation g = 3; g <= 7; g += 2) {
        CHECK(await(m.io, m.gpu.async_revive()));
        CHECK(m.gpu.status().generation == g);
        m.die();
        test::run_until(m.io, [&] { return m.gpu.status().generation == g + 1; });
        m.fail();
    }
}

TEST_CASE("a healthy device needs no revival, and a stopped device gets none")
{
    mortal m;
    CHECK(await(m.io, m.gpu.async_revive()));
    CHECK(m.gpu.status().generation == 1);
    CHECK(await(m.io, m.gpu.async_shutdown()));
    CHECK(await(m.io, m.gpu.async_revive()).error() == errc::device_stopped);
    CHECK(m.gpu.status().state == device_state::stopped);
    // An empty device completes on a thread of the system executor.
    std::promise<error_code> told;
    auto answer = told.get_future();
    device().async_revive([told = std::move(told)](error_code ec) mutable { told.set_value(ec); });
    CHECK(answer.get() == errc::invalid_argument);
}

TEST_CASE("a revival without a context reports the reason, and the next one may succeed")
{
    mortal m(2);
    m.die();
    test::run_until(m.io, [&] { return m.gpu.status().generation == 2; });
    m.injector.refuse_starts(1000);
    m.fail();
    CHECK(await(m.io, m.gpu.async_revive()).error() == errc::start_failed);
    CHECK(m.gpu.status().state == device_state::failed);
    m.injector.refuse_starts(1);
    CHECK(await(m.io, m.gpu.async_revive()));
    CHECK(m.gpu.status().state == device_state::ready);
}

TEST_CASE("concurrent revivals share one context, and ops started meanwhile wait for it")
{
    mortal m;
    m.fail();
    const std::vector<float> data(4, 1.0f);
    int revived = 0;
    error_code uploaded = errc::no_value;
    asio::cancellation_signal signal;
    error_code given_up = errc::no_value;
    for (int i = 0; i < 3; ++i)
        m.gpu.async_revive([&](error_code ec) { revived += !ec; });
    m.gpu.async_revive(asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { given_up = ec; }));
    signal.emit(asio::cancellation_type::total);
    m.gpu.async_upload(data, [&](error_code ec, const buffer<float>&) { uploaded = ec; });
    test::run_until(m.io, [&] { return revived == 3 && uploaded != errc::no_value && given_up != errc::no_value; });
    CHECK_FALSE(uploaded);
    CHECK(given_up == operation_aborted);
    CHECK(m.gpu.status().generation == 2);
}

TEST_CASE("a device may be stopped, and its execution context destroyed, during a revival")
{
    const auto held = std::make_shared<int>(0);
    for (const bool stopped : {true, false}) {
        CAPTURE(stopped);
        {
            // A lost context stops the device; a failed start is retried after an hour.
            restart_policy patient;
            patient.decider = [](const error_code& ec) noexcept {
                return is_context_lost(ec) ? directive::stop : directive::restart;
            };
            patient.initial_backoff = patient.max_backoff = 1h;
            mortal m(patient, 5);
            m.fail();
            m.injector.refuse_starts(1);
            error_code seen = errc::no_value;
            m.gpu.async_revive([&, held](error_code ec) { seen = ec; });
            test::run_until(m.io, [&] { return m.gpu.status().reason == errc::start_failed; });
            CHECK(m.gpu.status().state == device_state::rebuilding);
            CHECK(seen == errc::no_value);
            if (stopped) {
                CHECK(await(m.io, m.gpu.async_shutdown()));
                CHECK(seen == errc::device_stopped);
            }
        }
        CHECK(held.use_count() == 1);
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_revive
