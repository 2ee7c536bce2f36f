#include "former_fixture.hpp"

#include <doctest/doctest.h>

namespace test_serve_batch_deadlines {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;
using test::requests;
using clock = test::former_clock;
using fixture = test::former_fixture;

constexpr auto start = test::former_start;

TEST_SUITE("batch_former")
{
    TEST_CASE("a request whose deadline has passed is refused")
    {
        fixture f;
        CHECK(f.add(0, 1, {.deadline = start}).refused == errc::deadline_exceeded);
        CHECK(f.former.queued() == 0);
    }

    TEST_CASE("a request that cannot end in time is refused at once, with the estimate in the message")
    {
        fixture f;
        f.former.measured(0, 4, 10ms);
        f.add();
        REQUIRE(f.next().size() == 1);
        const auto& late = f.add(0, 1, {.deadline = start + 9ms});
        CHECK(late.refused == errc::deadline_exceeded);
        CHECK(late.refused.message() ==
              "batcher: the deadline is in 9000 us, and the request would take about 10000 us");
        CHECK(!f.add(0, 1, {.deadline = start + 10ms}).refused);
    }

    TEST_CASE("requests ahead count for the estimate")
    {
        auto r = test::former_rules();
        r.max_queued = {16, 16, 16};
        fixture f(r);
        f.former.measured(0, 4, 10ms);
        for (int i = 0; i < 8; ++i)
            f.add();
        // Two full batches ahead, two of which run at a time: 10 ms, then its own 10 ms.
        CHECK(f.add(0, 1, {.deadline = start + 19ms}).refused == errc::deadline_exceeded);
        CHECK(!f.add(0, 1, {.deadline = start + 19ms, .priority = priority::high}).refused);
    }

    TEST_CASE("when nothing runs or waits, a request is tried whatever the estimate")
    {
        fixture f;
        f.former.measured(0, 4, 10s);
        auto& a = f.add(0, 1, {.deadline = start + 1ms});
        CHECK(!a.refused);
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("a waiting request expires at its deadline")
    {
        fixture f;
        f.add();
        REQUIRE(f.next().size() == 1);
        auto& a = f.add(0, 1, {.deadline = start + 50us});
        CHECK(f.former.expired(f.now) == nullptr);
        // Nothing is known of its duration, so it would start after half of its time.
        CHECK(f.former.wake_at(f.now) == start + 25us);
        f.now += 25us;
        CHECK(f.former.wake_at(f.now) == start + 50us);
        f.now += 25us;
        CHECK(f.former.expired(f.now) == &a);
        CHECK(f.former.expired(f.now) == nullptr);
        CHECK(f.former.queued() == 0);
    }

    TEST_CASE("a batch starts early enough for the deadline of its requests")
    {
        auto r = test::former_rules();
        r.max_delay = 10ms;
        fixture f(r);
        f.former.measured(0, 1, 1ms);
        f.add();
        REQUIRE(f.next().size() == 1);
        auto& a = f.add(0, 1, {.deadline = start + 3ms});
        CHECK(f.former.wake_at(f.now) == start + 1ms);
        CHECK(f.next().empty());
        f.now += 1ms;
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("each shape has its own estimate and its own first deadline")
    {
        auto r = test::former_rules();
        r.max_delay = 1s;
        fixture f(r);
        f.former.measured(1, 1, 1ms);
        f.former.measured(2, 1, 50ms);
        f.add(1);
        REQUIRE(f.next().size() == 1);
        auto& a = f.add(1, 1, {.deadline = start + 100ms});
        auto& b = f.add(2, 1, {.deadline = start + 101ms});
        CHECK(f.former.wake_at(f.now) == start + 1ms);
        f.now = start + 1ms;
        CHECK(f.next() == requests{&b});
        f.former.ended();
        CHECK(f.next().empty());
        CHECK(f.former.wake_at(f.now) == start + 50ms);
        f.now = start + 50ms;
        CHECK(f.next() == requests{&a});
        CHECK(f.add(2, 1, {.deadline = f.now + 49ms}).refused == errc::deadline_exceeded);
        CHECK(!f.add(1, 1, {.deadline = f.now + 49ms}).refused);
    }

    TEST_CASE("an estimate follows the measurements, and one stall changes it little")
    {
        run_estimates e;
        CHECK(e.of(1, 1) == 0ns);
        e.add(1, 8, 800us);
        CHECK(e.of(1, 1) == 800us);
        CHECK(e.of(1, 64) == 800us);
        CHECK(e.measured(1, 8) == 800us);
        CHECK(e.measured(1, 1) == 0ns);
        // Of other shapes it says nothing.
        CHECK(e.of(0, 8) == 0ns);
        CHECK(e.of(2, 8) == 0ns);
        e.add(1, 8, 10s);
        CHECK(e.of(1, 8) == 900us);
        for (int i = 0; i < 100; ++i)
            e.add(1, 8, 100us);
        CHECK(e.of(1, 8) < 110us);
        e.add(1, 64, 5ms);
        CHECK(e.of(1, 9) == 5ms);
        // What was measured longest ago makes room.
        for (std::uint64_t shape = 100; shape < 400; ++shape)
            e.add(shape, 1, 7ms);
        CHECK(e.of(399, 1) == 7ms);
        CHECK(e.of(1, 8) == 0ns);
    }
}

} // namespace test_serve_batch_deadlines
