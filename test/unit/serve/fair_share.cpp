#include "fair_share_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace test_serve_fair_share {

TEST_SUITE("fair_share")
{
    TEST_CASE("a request gets its turn when another one ends, never inside a call")
    {
        fixture f;
        outcome first;
        outcome second;
        f.share.async_enter("a", first.handler());
        CHECK_FALSE(first.ended);
        f.share.async_enter("a", second.handler());
        test::run_until(f.io, [&] { return first.ended.has_value(); });
        CHECK_FALSE(*first.ended);
        CHECK(first.turn);
        f.io.poll();
        CHECK_FALSE(second.ended);
        CHECK(f.share.stats().all.queued == 1);
        CHECK(f.share.stats().all.running == 1);
        first.turn.finish(5ms);
        CHECK_FALSE(first.turn);
        CHECK_FALSE(second.ended);
        test::run_until(f.io, [&] { return second.ended.has_value(); });
        CHECK(second.turn);
        // It has ended; this does nothing.
        first.turn.finish(1h);
        second.turn.finish(3ms);
        const auto s = f.share.stats();
        CHECK(s.all.device_time == 8ms);
        CHECK(s.all.started == 2);
        CHECK(s.queue_time.count == 2);
        REQUIRE(s.tenants.size() == 1);
        CHECK(s.tenants[0].name == "a");
        CHECK_FALSE(s.tenants[0].configured);
        CHECK(s.tenants[0].counts.device_time == 8ms);
    }

    TEST_CASE("a permit that is destroyed, assigned to or moved ends its turn once, with the time since it began")
    {
        auto o = one_at_a_time();
        o.max_running = 2;
        fixture f(o);
        {
            permit a = f.enter();
            permit b = std::move(a);
            CHECK_FALSE(a);
            CHECK(b);
            auto& same = b;
            b = std::move(same);
            CHECK(b);
            CHECK(f.share.stats().all.running == 1);
            b = f.enter();
            CHECK(f.share.stats().all.running == 1);
            while (b.elapsed() < 1ms) {
            }
        }
        CHECK(f.share.stats().all.running == 0);
        CHECK(f.share.stats().all.device_time >= 1ms);
    }

    TEST_CASE("tenants get turns by the time that they used")
    {
        auto o = one_at_a_time();
        o.tenants["heavy"] = {.weight = 3, .burst = 0ns};
        o.tenants["light"] = {.weight = 1, .burst = 0ns};
        fixture f(o);
        std::vector<std::string> order;
        permit current = f.enter("heavy");
        for (int i = 0; i < 12; ++i)
            for (const char* name : {"heavy", "light"})
                f.share.async_enter(name, [&order, &current, name](error_code ec, permit p) {
                    if (ec)
                        return;
                    order.emplace_back(name);
                    current = std::move(p);
                });
        current.finish(1ms);
        while (order.size() < 12) {
            const auto before = order.size();
            test::run_until(f.io, [&] { return order.size() > before; });
            current.finish(1ms);
        }
        CHECK(std::ranges::count(order, "light") == 3);
        bool stopped = false;
        f.share.async_shutdown(shutdown::abandon, [&](error_code) { stopped = true; });
        test::run_until(f.io, [&] {
            current.finish(1ms);
            return stopped;
        });
    }

    TEST_CASE("a waiting request can be cancelled, a turn cannot")
    {
        for (const auto type :
             {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
            fixture f;
            auto turn = f.enter();
            asio::cancellation_signal signal;
            asio::cancellation_signal late;
            outcome cancelled;
            outcome next;
            f.share.async_enter("b", asio::bind_cancellation_slot(signal.slot(), cancelled.handler()));
            f.share.async_enter("c", asio::bind_cancellation_slot(late.slot(), next.handler()));
            signal.emit(type);
            CHECK_FALSE(cancelled.ended);
            test::run_until(f.io, [&] { return cancelled.ended.has_value(); });
            CHECK(*cancelled.ended == asio::error::operation_aborted);
            CHECK_FALSE(cancelled.turn);
            turn.finish();
            // It has its turn already, although it does not know yet.
            late.emit(type);
            test::run_until(f.io, [&] { return next.ended.has_value(); });
            CHECK_FALSE(*next.ended);
            CHECK(next.turn);
            CHECK(f.share.stats().all.cancelled == 1);
        }
    }

    TEST_CASE("a request expires while it waits, or is refused at once")
    {
        fixture f;
        auto turn = f.enter();
        auto r = test::await(f.io, f.share.async_enter("b", within(100ms)));
        REQUIRE_FALSE(r);
        CHECK(r.error() == errc::deadline_exceeded);
        CHECK(r.error().message() == "share: tenant b: the request was still waiting for its turn");
        r = test::await(f.io, f.share.async_enter("b", within(-1ms)));
        REQUIRE_FALSE(r);
        CHECK(r.error() == errc::deadline_exceeded);
        CHECK(f.share.stats().all.expired == 2);
        // With time left it gets its turn, and no timer keeps the executor running.
        outcome later;
        f.share.async_enter("b", within(1h), later.handler());
        turn.finish();
        test::run_out(f.io);
        REQUIRE(later.ended);
        CHECK_FALSE(*later.ended);
        CHECK(later.turn);
    }

    TEST_CASE("an earlier deadline ends first")
    {
        fixture f;
        const auto turn = f.enter();
        outcome late;
        outcome early;
        f.share.async_enter("a", within(1h), late.handler());
        f.share.async_enter("b", within(1ms), early.handler());
        test::run_until(f.io, [&] { return early.ended.has_value(); });
        CHECK(*early.ended == errc::deadline_exceeded);
        CHECK_FALSE(late.ended);
        REQUIRE(f.share.stats().all.queued == 1);
        f.share.async_shutdown(shutdown::abandon, asio::detached);
        test::run_until(f.io, [&] { return late.ended.has_value(); });
        CHECK(*late.ended == errc::actor_stopped);
    }

    TEST_CASE("a request that does not want to wait is refused")
    {
        fixture f;
        enter_options at_once;
        at_once.when_full = when_full::fail;
        auto turn = f.enter("a", at_once);
        const auto r = test::await(f.io, f.share.async_enter("b", at_once));
        REQUIRE_FALSE(r);
        CHECK(r.error() == errc::queue_full);
        CHECK(r.error().message() == "share: tenant b cannot have a turn at once; all tenants together have 1, and "
                                     "max_running is 1");
        turn.finish();
        CHECK(f.enter("b", at_once));
    }

    TEST_CASE("a full queue is an error that names the tenant")
    {
        auto o = one_at_a_time();
        o.others.max_queued = 1;
        fixture f(o);
        auto turn = f.enter();
        outcome waiting;
        f.share.async_enter("a", waiting.handler());
        const auto r = test::await(f.io, f.share.async_enter("a"));
        REQUIRE_FALSE(r);
        CHECK(r.error() == errc::queue_full);
        CHECK(r.error().message() == "share: tenant a has max_queued (1) waiting requests");
        turn.finish();
        test::run_until(f.io, [&] { return waiting.ended.has_value(); });
    }
}

} // namespace test_serve_fair_share
