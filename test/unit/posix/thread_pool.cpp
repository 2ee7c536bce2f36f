#include "posix/thread_pool.hpp"

#include "support/gate.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace test_posix_thread_pool {

namespace {

using coaccel::detail::thread_pool;

TEST_SUITE_BEGIN("thread_pool");

TEST_CASE("every thread calls the start function before its first job")
{
    std::atomic<int> started = 0;
    std::atomic<int> before_start = 0;
    thread_local bool here = false;
    thread_pool pool(4, [&] {
        here = true;
        ++started;
    });
    CHECK(pool.limit() == 4);
    CHECK(started == 0);
    for (int i = 0; i < 100; ++i)
        REQUIRE(pool.run([&] { before_start += here ? 0 : 1; }));
    pool.finish();
    CHECK(before_start == 0);
    CHECK(started >= 1);
    CHECK(started <= 4);
}

TEST_CASE("as many jobs run at once as the limit allows")
{
    test::gate gate;
    thread_pool pool(3);
    for (int i = 0; i < 5; ++i)
        REQUIRE(pool.run([&] { gate.pass(); }));
    gate.wait_for(3);
    CHECK_FALSE(pool.idle());
    CHECK_FALSE(gate.reached(4));
    gate.open();
    pool.finish();
    CHECK(gate.reached(5));
}

TEST_CASE("finish runs the queued jobs, stop drops and destroys them")
{
    for (const bool stops : {false, true}) {
        CAPTURE(stops);
        test::gate gate;
        thread_pool pool(1);
        std::atomic<int> runs = 0;
        REQUIRE(pool.run([&] { gate.pass(); }));
        gate.wait_for(1);
        const auto owned = std::make_shared<int>();
        for (int i = 0; i < 10; ++i)
            REQUIRE(pool.run([&runs, owned] { ++runs; }));
        std::thread opener([&] {
            // A pool that stops has dropped its jobs by then.
            while (stops && owned.use_count() > 1)
                std::this_thread::yield();
            gate.open();
        });
        if (stops)
            pool.stop();
        else
            pool.finish();
        opener.join();
        CHECK(runs == (stops ? 0 : 10));
        CHECK(owned.use_count() == 1);
        CHECK_FALSE(pool.run([] {}));
        CHECK(pool.idle());
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_posix_thread_pool
