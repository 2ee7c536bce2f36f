#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

namespace test_device_executor {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
using test::await;
using test::make_device;

/// An op that takes the given time.
struct slow_op {
    std::chrono::milliseconds time;

    void operator()(native_stream, std::span<float>) const { std::this_thread::sleep_for(time); }
};

TEST_SUITE_BEGIN("device and its executor");

TEST_CASE("run() returns soon after the last op, not at the next fault check")
{
    for (const auto how : {completion::adaptive, completion::host_fn, completion::sync}) {
        CAPTURE(static_cast<int>(how));
        auto o = test::pool_options();
        o.context.monitor_interval = 25ms;
        o.context.completion = how;
        asio::io_context io;
        auto gpu = make_device(io, o);
        auto x = await(io, gpu.async_alloc<float>(4)).value();
        // The fastest of several runs, because the machine may be busy.
        auto least = clock_type::duration::max();
        for (int i = 0; i < 10; ++i) {
            clock_type::time_point answered{};
            gpu.async_submit(inout(x), slow_op{2ms}, [&](error_code) { answered = clock_type::now(); });
            io.restart();
            io.run();
            least = std::min(least, clock_type::now() - answered);
        }
        CHECK(least < 10ms);
    }
}

TEST_CASE("poll() returns while an op runs, even near its expected end")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    // Counts turns instead of time, because the machine may be busy: each turn polls for 5 microseconds, and polling
    // lasts 480 microseconds around the expected end.
    std::size_t most = 0;
    for (int i = 0; i < 12; ++i) {
        bool done = false;
        gpu.async_submit(inout(x), slow_op{60ms}, [&](error_code) { done = true; });
        while (!done) {
            io.restart();
            most = std::max(most, io.poll());
            // A program that polls in its own loop does other things in between.
            std::this_thread::sleep_for(50us);
        }
    }
    CHECK(most < 200);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_executor
