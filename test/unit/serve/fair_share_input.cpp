#include "await_elsewhere.hpp"
#include "fair_share_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <optional>

namespace test_serve_fair_share {

TEST_SUITE("fair_share input")
{
    TEST_CASE("shutdown lets waiting requests have their turns, or not")
    {
        for (const auto mode : {shutdown::drain, shutdown::abandon}) {
            fixture f;
            auto turn = f.enter();
            outcome waiting;
            f.share.async_enter("a", waiting.handler());
            std::optional<error_code> stopped;
            f.share.async_shutdown(mode, [&](error_code ec) { stopped = ec; });
            const auto late = test::await(f.io, f.share.async_enter("b"));
            REQUIRE_FALSE(late);
            CHECK(late.error() == errc::actor_stopped);
            CHECK_FALSE(stopped);
            CHECK(waiting.ended.has_value() == (mode == shutdown::abandon));
            turn.finish();
            test::run_until(f.io, [&] { return waiting.ended.has_value(); });
            if (mode == shutdown::drain) {
                CHECK_FALSE(*waiting.ended);
                f.io.poll();
                CHECK_FALSE(stopped);
                waiting.turn.finish();
            } else {
                CHECK(*waiting.ended == errc::actor_stopped);
            }
            test::run_until(f.io, [&] { return stopped.has_value(); });
            CHECK_FALSE(*stopped);
            // Again, at once.
            CHECK(test::await(f.io, f.share.async_shutdown(mode)));
        }
    }

    TEST_CASE("waiting for a shutdown can be cancelled")
    {
        fixture f;
        const auto turn = f.enter();
        asio::cancellation_signal signal;
        std::optional<error_code> ended;
        f.share.async_shutdown(shutdown::drain,
                               asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { ended = ec; }));
        signal.emit(asio::cancellation_type::total);
        test::run_until(f.io, [&] { return ended.has_value(); });
        CHECK(*ended == asio::error::operation_aborted);
    }

    TEST_CASE("bad input is refused")
    {
        fixture f;
        for (const auto estimate : {std::chrono::nanoseconds(-1), std::chrono::nanoseconds(61min)}) {
            enter_options how;
            how.estimate = estimate;
            const auto r = test::await(f.io, f.share.async_enter("a", how));
            REQUIRE_FALSE(r);
            CHECK(r.error() == errc::invalid_argument);
        }
        const auto empty = test::await_elsewhere(fair_share().async_enter("a"));
        REQUIRE_FALSE(empty);
        CHECK(empty.error() == errc::invalid_argument);
        CHECK_FALSE(test::await_elsewhere(fair_share().async_shutdown(shutdown::drain)));
        CHECK(fair_share().stats().tenants.empty());
        CHECK_FALSE(fair_share());
        CHECK(f.share == fair_share(f.share));
        permit none;
        none.finish();
        CHECK_FALSE(none);
    }

    TEST_CASE("options out of range are refused, with the tenant and the value")
    {
        struct bad {
            void (*change)(fair_share_options&);
            const char* message;
        };
        const bad all[] = {
            {[](auto& o) { o.max_running = 0; }, "max_running is 0; it must be at least 1"},
            {[](auto& o) { o.max_queued = 0; }, "max_queued is 0; it must be at least 1"},
            {[](auto& o) { o.max_tenants = 0; }, "max_tenants is 0; it must be at least 1"},
            {[](auto& o) { o.others.weight = 0; }, "tenant others: weight is 0; it must be from 1 to 1000000"},
            {[](auto& o) { o.others.minimum_share = 0.1; },
             "others.minimum_share is 0.1; it must be 0: any number of tenants could demand it"},
            {[](auto& o) { o.tenants["x"].weight = 1'000'001; },
             "tenant x: weight is 1000001; it must be from 1 to 1000000"},
            {[](auto& o) { o.tenants["x"].burst = -1ns; }, "tenant x: burst is -1 ns; it must be from 0 to a day"},
            {[](auto& o) { o.tenants["x"].minimum_share = 0.91; },
             "tenant x: minimum_share is 0.91; it must be from 0 to 0.9"},
            {[](auto& o) { o.tenants["x"].minimum_share = std::numeric_limits<double>::quiet_NaN(); },
             "tenant x: minimum_share is nan; it must be from 0 to 0.9"},
            {[](auto& o) { o.tenants["x"].max_queued = 0; }, "tenant x: max_queued is 0; it must be at least 1"},
            {[](auto& o) { o.tenants["x"].max_running = 0; }, "tenant x: max_running is 0; it must be at least 1"},
            {[](auto& o) { o.tenants["x"].estimate = 0ns; },
             "tenant x: estimate is 0; it must be above zero and at most an hour"},
            {[](auto& o) { o.tenants["x"].minimum_share = o.tenants["y"].minimum_share = 0.5; },
             "the sum of minimum_share is 1; it must be at most 0.9"},
            {[](auto& o) { o.tenants[""]; }, "tenants has an empty name"},
        };
        asio::io_context io;
        for (const bad& b : all) {
            fair_share_options o;
            b.change(o);
            const auto made = fair_share::create(io.get_executor(), o);
            REQUIRE_FALSE(made);
            CHECK(made.error() == errc::invalid_option);
            CHECK(made.error().message() == b.message);
        }
    }
}

} // namespace test_serve_fair_share
