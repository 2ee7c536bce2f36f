#include "fair_share_fixture.hpp"
#include "support/tracking.hpp"

#include <coaccel/telemetry/exposition.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test_serve_fair_share {

TEST_SUITE("fair_share callers")
{
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
        const auto run = [&](fair_share share, std::chrono::nanoseconds time) -> asio::awaitable<result<void>> {
            auto inner = throws();
            auto r = co_await share.run("a", within(time), std::move(inner));
            co_return r;
        };
        auto turn = f.enter();
        const auto refused = test::co_run(f.io, run(f.share, 1ms));
        REQUIRE_FALSE(refused);
        CHECK(refused.error() == errc::deadline_exceeded);
        CHECK_FALSE(began);
        turn.finish();
        CHECK_THROWS_AS((void)test::co_run(f.io, run(f.share, 1h)), std::runtime_error);
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
