#include "context/sync_waiter.hpp"

#include "support/gate.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using coaccel::notification;
using coaccel::detail::sync_waiter;

class counter {
public:
    notification call()
    {
        return {[](void* self) noexcept { static_cast<counter*>(self)->add(); }, this};
    }

    void wait_for(int n)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return count_ >= n; });
    }

    int count()
    {
        const std::scoped_lock lock(mutex_);
        return count_;
    }

private:
    void add() noexcept
    {
        const std::scoped_lock lock(mutex_);
        ++count_;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

} // namespace

TEST_SUITE_BEGIN("sync_waiter");

TEST_CASE("one that is never used starts no thread and stops twice")
{
    sync_waiter w;
    CHECK_FALSE(w.busy());
    CHECK(w.stop());
    CHECK(w.stop());
}

TEST_CASE("it blocks on a thread of its own and notifies when that has ended")
{
    counter told;
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

TEST_CASE("it serves one wait after another, each notified once")
{
    counter told;
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

TEST_CASE("stop waits for what it blocks on")
{
    counter told;
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

TEST_CASE("a thread that does not come back is left alone, and tells nobody")
{
    counter told;
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

TEST_CASE("a thread that comes back in time has ended after stop")
{
    counter told;
    sync_waiter w;
    w.wait_for([] {}, told.call());
    told.wait_for(1);
    CHECK(w.stop(coaccel::detail::clock::now() + std::chrono::seconds(10)));
    CHECK(told.count() == 1);
}

TEST_SUITE_END();
