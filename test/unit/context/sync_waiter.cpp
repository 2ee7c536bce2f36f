#include "context/completion/sync_waiter.hpp"

#include "support/gate.hpp"
#include "support/told.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <thread>

namespace test_context_sync_waiter {

using coaccel::detail::sync_waiter;

TEST_SUITE_BEGIN("sync_waiter");

TEST_CASE("an unused waiter starts no thread and can be stopped twice")
{
    sync_waiter w;
    CHECK_FALSE(w.busy());
    CHECK(w.stop());
    CHECK(w.stop());
}

TEST_CASE("the waiter blocks on its own thread and notifies when the blocking call has ended")
{
    test::told told;
    test::gate gate;
    sync_waiter w;
    std::thread::id where;
    w.wait_for(
        [&] {
            where = std::this_thread::get_id();
            gate.pass();
        },
        told.call());
    CHECK(w.busy());
    gate.wait_for(1);
    CHECK(w.busy());
    CHECK(told.count() == 0);
    gate.open();
    told.wait_for(1);
    CHECK_FALSE(w.busy());
    CHECK(where != std::this_thread::get_id());
}

TEST_CASE("the waiter serves one wait after another, and notifies once for each")
{
    test::told told;
    int blocked = 0;
    sync_waiter w;
    for (int i = 1; i <= 500; ++i) {
        w.wait_for([&] { ++blocked; }, told.call());
        told.wait_for(i);
        CHECK_FALSE(w.busy());
    }
    CHECK(w.stop());
    CHECK(blocked == 500);
    CHECK(told.count() == 500);
}

TEST_CASE("stop waits for the blocking call")
{
    test::told told;
    test::gate gate;
    auto w = std::make_unique<sync_waiter>();
    bool ended = false;
    w->wait_for(
        [&] {
            gate.pass();
            ended = true;
        },
        told.call());
    gate.wait_for(1);
    std::thread opener([&] { gate.open(); });
    w.reset();
    CHECK(ended);
    CHECK(told.count() == 1);
    opener.join();
}

TEST_CASE("a thread that does not return is abandoned, and sends no notification")
{
    test::told told;
    test::gate gate;
    test::gate out;
    {
        sync_waiter w;
        w.wait_for(
            [&] {
                gate.pass();
                out.open();
            },
            told.call());
        gate.wait_for(1);
        CHECK_FALSE(w.stop(coaccel::detail::clock::now() + std::chrono::milliseconds(1)));
        CHECK(w.stop());
    }
    gate.open();
    out.pass();
    CHECK(told.count() == 0);
}

TEST_CASE("a thread that returns in time has ended after stop")
{
    test::told told;
    sync_waiter w;
    w.wait_for([] {}, told.call());
    told.wait_for(1);
    CHECK(w.stop(coaccel::detail::clock::now() + std::chrono::seconds(10)));
    CHECK(told.count() == 1);
}

TEST_SUITE_END();

} // namespace test_context_sync_waiter
