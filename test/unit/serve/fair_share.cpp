#include "await_elsewhere.hpp"
#include "support/co_run.hpp"
#include "support/devices.hpp"
#include "support/tracking.hpp"

#include <coaccel/serve/fair_share.hpp>
#include <coaccel/telemetry/exposition.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test_serve_fair_share {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::enter_options;
using serve::fair_share;
using serve::fair_share_options;
using serve::permit;

fair_share_options one_at_a_time()
{
    fair_share_options o;
    o.name = "share";
    o.max_running = 1;
    o.others.burst = 0ns;
    return o;
}

struct fixture {
    explicit fixture(const fair_share_options& o = one_at_a_time())
        : share(fair_share::create(io.get_executor(), o).value())
    {}
    ~fixture()
    {
        share = {};
        test::run_out(io);
    }

    /// A turn that begins at once.
    permit enter(const std::string& tenant = "a", const enter_options& how = {})
    {
        auto r = test::await(io, share.async_enter(tenant, how));
        REQUIRE(r);
        return std::move(r).value();
    }

    asio::io_context io;
    fair_share share;
};

/// What became of a request.
struct outcome {
    std::optional<error_code> ended;
    permit turn;

    auto handler()
    {
        return [this](error_code ec, permit p) {
            ended = ec;
            turn = std::move(p);
        };
    }
};

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
        auto r = test::await(f.io, f.share.async_enter("b", within(5ms)));
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

    TEST_CASE("any completion token, on the executor of the handler, with its allocator")
    {
        fixture f;
        // use_future
        {
            auto future = f.share.async_enter("a", asio::use_future);
            f.io.restart();
            f.io.run();
            CHECK(future.get());
        }
        // A strand
        const auto strand = asio::make_strand(f.io);
        bool there = false;
        f.share.async_enter(
            "a", asio::bind_executor(strand, [&](error_code, permit) { there = strand.running_in_this_thread(); }));
        test::run_out(f.io);
        CHECK(there);
        // An allocator
        test::allocation_count count;
        f.share.async_enter("a", asio::bind_allocator(test::tracking_allocator<int>(count),
                                                      [&](error_code, permit) { CHECK(count.live == 0); }));
        CHECK(count.live == 1);
        test::run_out(f.io);
        CHECK(count.live == 0);
        // use_awaitable
        const auto enter = [](fair_share share) -> asio::awaitable<bool> {
            permit p = co_await share.async_enter("a", asio::use_awaitable);
            co_return bool(p);
        };
        CHECK(test::co_run(f.io, enter(f.share)));
    }

    TEST_CASE("permits outlive the object and its execution context")
    {
        permit kept;
        fair_share share;
        {
            asio::io_context io;
            share = fair_share::create(io.get_executor(), one_at_a_time()).value();
            kept = test::await(io, share.async_enter("a")).value();
        }
        CHECK(share.stats().all.running == 1);
        kept.finish(1ms);
        CHECK(share.stats().all.device_time == 1ms);
        // The handler of a request after the end is destroyed without being called.
        bool called = false;
        auto token = std::make_shared<int>();
        share.async_enter("a", [&called, token](error_code, permit) { called = true; });
        CHECK(token.use_count() == 1);
        CHECK_FALSE(called);
        share = {};
    }

    TEST_CASE("an execution context that is destroyed destroys those who wait, also if they own the object")
    {
        auto token = std::make_shared<int>();
        permit kept;
        {
            asio::io_context io;
            auto share = fair_share::create(io.get_executor(), one_at_a_time()).value();
            kept = test::await(io, share.async_enter("a")).value();
            for (int i = 0; i < 3; ++i)
                share.async_enter("a", within(1h), [share, token](error_code, permit) {});
            share.async_shutdown(shutdown::drain, [share, token](error_code) {});
            CHECK(token.use_count() == 5);
        }
        CHECK(token.use_count() == 1);
        kept.finish();
    }

    TEST_CASE("a turn whose completion is destroyed unread ends")
    {
        fixture f;
        {
            asio::io_context other;
            auto turn = f.enter();
            f.share.async_enter("a", asio::bind_executor(other, [](error_code, permit) {}));
            turn.finish();
            CHECK(f.share.stats().all.running == 1);
        }
        CHECK(f.share.stats().all.running == 0);
        CHECK(f.enter());
    }

    TEST_CASE("the work runs in the turn, and its end is that of the turn")
    {
        fixture f;
        const auto work = [](fair_share share, int value) -> asio::awaitable<result<int>> {
            CHECK(share.stats().all.running == 1);
            co_return value;
        };
        const auto all = [&](fair_share share) -> asio::awaitable<int> {
            auto inner = work(share, 42);
            const auto r = co_await share.run("a", enter_options{}, std::move(inner));
            CHECK(share.stats().all.running == 0);
            // An operation with the default token, here another turn of another object.
            auto other = fair_share::create(share.get_executor(), one_at_a_time()).value();
            auto nested = co_await share.run("a", within(1h), other.async_enter("b"));
            CHECK(nested.has_value());
            CHECK(other.stats().all.running == 1);
            CHECK(share.stats().all.running == 0);
            co_return r.value();
        };
        CHECK(test::co_run(f.io, all(f.share)) == 42);
        CHECK(f.share.stats().all.started == 2);
    }

    TEST_CASE("work that throws ends its turn, and work without a turn is not started")
    {
        fixture f;
        bool began = false;
        const auto throws = [&]() -> asio::awaitable<result<void>> {
            began = true;
            throw std::runtime_error("work");
            co_return success();
        };
        const auto run = [&](fair_share share) -> asio::awaitable<result<void>> {
            auto inner = throws();
            auto r = co_await share.run("a", within(1ms), std::move(inner));
            co_return r;
        };
        auto turn = f.enter();
        const auto refused = test::co_run(f.io, run(f.share));
        REQUIRE_FALSE(refused);
        CHECK(refused.error() == errc::deadline_exceeded);
        CHECK_FALSE(began);
        turn.finish();
        CHECK_THROWS_AS((void)test::co_run(f.io, run(f.share)), std::runtime_error);
        CHECK(f.share.stats().all.running == 0);
    }

    TEST_CASE("many threads")
    {
        constexpr int threads = 4;
        constexpr int clients = 40;
        constexpr int each = 100;
        asio::io_context io;
        auto o = one_at_a_time();
        o.max_running = 3;
        o.max_tenants = 5;
        o.others.max_running = 2;
        const auto share = fair_share::create(io.get_executor(), o).value();
        std::atomic<int> running = 0;
        std::atomic<int> most = 0;
        std::atomic<int> turns = 0;
        std::atomic<int> ended = 0;
        const auto client = [&](std::string tenant, int seed) -> asio::awaitable<void> {
            for (int i = 0; i < each; ++i) {
                // Some are so short of time that they expire.
                auto how = (seed + i) % 7 == 0 ? within(50us) : exec_options{};
                auto r = co_await share.async_enter(tenant, how);
                ++ended;
                if (!r)
                    continue;
                ++turns;
                const int now = ++running;
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                auto ex = co_await asio::this_coro::executor;
                co_await asio::post(ex, asio::use_awaitable);
                --running;
                if (i % 2)
                    r.value().finish(10us);
            }
        };
        for (int c = 0; c < clients; ++c)
            asio::co_spawn(asio::make_strand(io), client("tenant" + std::to_string(c % 5), c), asio::detached);
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&io] { io.run(); });
        while (ended < clients * each)
            (void)share.stats();
        for (auto& t : all)
            t.join();
        CHECK(most <= 3);
        const auto s = share.stats();
        CHECK(s.all.running == 0);
        CHECK(s.all.queued == 0);
        CHECK(s.all.started == static_cast<std::uint64_t>(turns));
        CHECK(s.all.started + s.all.expired == clients * each);
    }

    TEST_CASE("metrics of configured tenants and of all others")
    {
        auto o = one_at_a_time();
        o.tenants["known"] = {.weight = 7};
        fixture f(o);
        const telemetry::registry metrics(f.io.get_executor());
        const auto registered = f.share.report_to(metrics);
        f.enter("known").finish(2s);
        f.enter("guest1").finish(1s);
        f.enter("guest2").finish(1s);
        const auto all = test::await(f.io, metrics.async_collect()).value();
        const auto text = telemetry::to_text(all);
        const auto has = [&](const char* line) { CHECK_MESSAGE(text.find(line) != std::string::npos, line); };
        has(R"(coaccel_fair_share_device_seconds_total{share="share",tenant="known"} 2)");
        has(R"(coaccel_fair_share_device_seconds_total{share="share",tenant=""} 2)");
        has(R"(coaccel_fair_share_requests_total{share="share",tenant="",outcome="started"} 2)");
        has(R"(coaccel_fair_share_weight{share="share",tenant="known"} 7)");
        has(R"(coaccel_fair_share_tenants{share="share"} 3)");
        has(R"(coaccel_fair_share_queue_seconds_count{share="share"} 3)");
        has("coaccel_telemetry_dropped_samples_total 0");
    }
}

} // namespace test_serve_fair_share
