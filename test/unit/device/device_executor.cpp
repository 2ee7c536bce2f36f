#include "device/device_executor.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace test_device_device_executor {

namespace {

using namespace std::chrono_literals;
using namespace coaccel;
using detail::async_op_list;
using detail::device_executor;
using work = device_executor::work;
using clock_type = std::chrono::steady_clock;
namespace asio = boost::asio;

constexpr auto never = clock_type::time_point::max();

struct owner : std::enable_shared_from_this<owner> {
    void wake() noexcept { ++wakes; }

    int wakes = 0;
};

struct fixture {
    /// Whether the io_context has outstanding work.
    bool has_work()
    {
        io.restart();
        io.poll();
        return !io.stopped();
    }

    asio::io_context io;
    device_executor ex{io.get_executor()};
};

} // namespace

TEST_SUITE_BEGIN("device_executor");

TEST_CASE_FIXTURE(fixture, "a turn and a runner can be posted at the same time, and again when they have begun")
{
    int turns = 0, runners = 0;
    for (int i = 0; i < 3; ++i) {
        ex.post_turn([&] { ++turns; });
        ex.post_runner([&] { ++runners; });
        CHECK(turns == i);
        io.restart();
        CHECK(io.run() == 2);
    }
    CHECK(turns == 3);
    CHECK(runners == 3);
}

TEST_CASE_FIXTURE(fixture, "each kind of work keeps the executor running until it ends")
{
    CHECK_FALSE(has_work());
    ex.begin(work::stopping);
    CHECK(ex.has(work::stopping));
    CHECK_FALSE(ex.has(work::context));
    CHECK(has_work());
    ex.begin(work::context);
    ex.begin(work::context);
    ex.end(work::stopping);
    CHECK(has_work());
    ex.end(work::context);
    CHECK_FALSE(has_work());
    ex.end(work::context);
    CHECK_FALSE(ex.has(work::context));
}

TEST_CASE_FIXTURE(fixture, "the timer wakes its owner once")
{
    const auto o = std::make_shared<owner>();
    const auto now = clock_type::now();
    CHECK(ex.wait_until(now + 1ms, now, *o));
    CHECK(ex.wait_until(now + 1ms, now, *o));
    CHECK(has_work());
    io.run();
    CHECK(o->wakes == 1);
    CHECK(clock_type::now() >= now + 1ms);
}

TEST_CASE_FIXTURE(fixture, "a timer that is not needed any more is cancelled in the second turn")
{
    const auto o = std::make_shared<owner>();
    const auto now = clock_type::now();
    CHECK(ex.wait_until(never, now, *o));
    CHECK(ex.wait_until(now + 1h, now, *o));
    CHECK_FALSE(ex.wait_until(never, now, *o));
    CHECK(has_work());
    CHECK(ex.wait_until(never, now, *o));
    CHECK_FALSE(has_work());
    CHECK(o->wakes == 0);
}

// The handler of the first wait is in the queue of the executor when the turn runs that does not want it any more.
TEST_CASE_FIXTURE(fixture, "a late handler of an earlier wait does not count for the timer that was set since")
{
    for (const bool cancels : {false, true}) {
        CAPTURE(cancels);
        const auto o = std::make_shared<owner>();
        const auto first = clock_type::now() + 1ms;
        CHECK(ex.wait_until(first, first - 1ms, *o));
        std::this_thread::sleep_until(first + 1ms);
        const auto now = clock_type::now();
        int wakes_before = -1;
        // Behind the function of the executor that finds expired timers, before the handlers that this one adds.
        asio::post(io, [&] {
            wakes_before = o->wakes;
            if (!cancels) {
                CHECK(ex.wait_until(now + 1h, now, *o));
                return;
            }
            CHECK_FALSE(ex.wait_until(never, now, *o));
            CHECK(ex.wait_until(never, now, *o));
        });
        CHECK(has_work() == !cancels);
        // Otherwise this was another case.
        REQUIRE(wakes_before == 0);
        REQUIRE(o->wakes == 1);
        if (cancels)
            CHECK(ex.wait_until(now + 1h, now, *o));
        CHECK_FALSE(ex.wait_until(never, now, *o));
        CHECK(has_work());
        CHECK(ex.wait_until(never, now, *o));
        CHECK_FALSE(has_work());
        CHECK(o->wakes == 1);
    }
}

TEST_CASE_FIXTURE(fixture, "a timer keeps no owner alive")
{
    auto o = std::make_shared<owner>();
    const std::weak_ptr<owner> weak = o;
    const auto now = clock_type::now();
    CHECK(ex.wait_until(now + 1ms, now, *o));
    o.reset();
    CHECK(weak.expired());
    io.run();
}

TEST_CASE_FIXTURE(fixture, "a cancelled timer wakes nothing")
{
    const auto o = std::make_shared<owner>();
    const auto now = clock_type::now();
    CHECK(ex.wait_until(now + 1h, now, *o));
    ex.cancel_timer();
    CHECK_FALSE(has_work());
    CHECK(o->wakes == 0);
}

TEST_CASE_FIXTURE(fixture, "released work leaves nothing on the execution context")
{
    const auto o = std::make_shared<owner>();
    const auto now = clock_type::now();
    CHECK(ex.wait_until(now + 1h, now, *o));
    ex.begin(work::stopping);
    ex.begin(work::context);
    ex.release_work();
    CHECK_FALSE(has_work());
    CHECK(o->wakes == 0);
    {
        async_op_list out;
        ex.let_go(out);
        CHECK_FALSE(out.empty());
    }
    CHECK(ex.get() == asio::any_io_executor(asio::system_executor()));
}

TEST_SUITE_END();

} // namespace test_device_device_executor
