#include "await_elsewhere.hpp"
#include "support/co_run.hpp"
#include "support/devices.hpp"

#include <coaccel/serve/rate_limiter.hpp>
#include <coaccel/telemetry/exposition.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace test_serve_rate_limiter {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::rate_limiter;
using serve::rate_limiter_options;

/// Three tokens, and no further ones while a test runs.
rate_limiter_options three()
{
    rate_limiter_options o;
    o.name = "limiter";
    o.others = {.rate = 1, .period = 24h, .burst = 3};
    return o;
}

/// A token comes back soon.
rate_limiter_options quick()
{
    rate_limiter_options o;
    o.name = "limiter";
    o.others = {.rate = 1, .period = 2ms, .burst = 1};
    return o;
}

struct fixture {
    explicit fixture(const rate_limiter_options& o = three())
        : limiter(rate_limiter::create(io.get_executor(), o).value())
    {}
    ~fixture()
    {
        limiter = {};
        test::run_out(io);
    }

    asio::io_context io;
    rate_limiter limiter;
};

TEST_SUITE("rate_limiter")
{
    TEST_CASE("each tenant has its own bucket")
    {
        auto o = three();
        o.tenants["known"] = {.rate = 1, .period = 24h, .burst = 1};
        fixture f(o);
        CHECK(f.limiter.try_acquire("known").value());
        CHECK_FALSE(f.limiter.try_acquire("known").value());
        for (const char* name : {"a", "b"}) {
            CHECK(f.limiter.try_acquire(name, 2).value());
            CHECK(f.limiter.try_acquire(name).value());
            const auto d = f.limiter.try_acquire(name).value();
            CHECK_FALSE(d);
            // Nearly a day.
            CHECK(d.retry_after > 1h);
            CHECK(d.retry_after <= 24h);
            CHECK(d.retry_after_seconds() <= 24 * 3600);
        }
        const auto s = f.limiter.stats();
        CHECK(s.all.allowed == 5);
        CHECK(s.all.refused == 3);
        REQUIRE(s.tenants.size() == 3);
        CHECK(s.tenants[2].name == "known");
        CHECK(s.tenants[2].configured);
        CHECK(s.tenants[2].tokens == 0);
    }

    TEST_CASE("a request waits for its tokens")
    {
        fixture f(quick());
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 5; ++i)
            REQUIRE(test::await(f.io, f.limiter.async_acquire("a")));
        // The first token was there.
        CHECK(std::chrono::steady_clock::now() - begin >= 8ms);
        CHECK(f.limiter.stats().all.allowed == 5);
        CHECK(f.limiter.stats().all.waiting == 0);
    }

    TEST_CASE("requests complete in their order, never inside the call")
    {
        fixture f(quick());
        std::vector<int> order;
        for (int i = 0; i < 4; ++i)
            f.limiter.async_acquire("a", [&order, i](error_code ec) {
                if (!ec)
                    order.push_back(i);
            });
        CHECK(order.empty());
        test::run_until(f.io, [&] { return order.size() == 4; });
        CHECK(order == std::vector{0, 1, 2, 3});
    }

    TEST_CASE("a waiting request can be cancelled, and those behind it move up")
    {
        fixture f;
        REQUIRE(f.limiter.try_acquire("a", 1).value());
        asio::cancellation_signal signal;
        std::optional<error_code> first;
        std::optional<error_code> second;
        f.limiter.async_acquire("a", 3,
                                asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) { first = ec; }));
        f.limiter.async_acquire("a", 2, [&](error_code ec) { second = ec; });
        f.io.poll();
        CHECK_FALSE(first);
        CHECK_FALSE(second);
        CHECK_FALSE(f.limiter.try_acquire("a").value());
        signal.emit(asio::cancellation_type::total);
        test::run_until(f.io, [&] { return first && second; });
        CHECK(*first == asio::error::operation_aborted);
        CHECK_FALSE(*second);
        CHECK(f.limiter.stats().all.cancelled == 1);
    }

    TEST_CASE("a deadline before the tokens are there is refused at once")
    {
        fixture f;
        REQUIRE(f.limiter.try_acquire("a", 3).value());
        const auto r = test::await(f.io, f.limiter.async_acquire("a", 1, within(1h)));
        REQUIRE_FALSE(r);
        CHECK(r.error() == errc::deadline_exceeded);
        exec_options at_once;
        at_once.when_full = when_full::fail;
        const auto full = test::await(f.io, f.limiter.async_acquire("a", 1, at_once));
        REQUIRE_FALSE(full);
        CHECK(full.error() == errc::queue_full);
        CHECK(test::await(f.io, f.limiter.async_acquire("b", 1, at_once)));
        CHECK(f.limiter.stats().all.expired == 1);
        CHECK(f.limiter.stats().all.refused == 1);
    }

    TEST_CASE("after stop() no request waits")
    {
        fixture f;
        REQUIRE(f.limiter.try_acquire("a", 3).value());
        std::optional<error_code> ended;
        f.limiter.async_acquire("a", [&](error_code ec) { ended = ec; });
        f.limiter.stop();
        test::run_until(f.io, [&] { return ended.has_value(); });
        CHECK(*ended == errc::actor_stopped);
        CHECK(f.limiter.try_acquire("b").error() == errc::actor_stopped);
        const auto late = test::await(f.io, f.limiter.async_acquire("b"));
        REQUIRE_FALSE(late);
        CHECK(late.error() == errc::actor_stopped);
        CHECK(late.error().message() == "limiter: the rate limiter has been stopped");
    }

    TEST_CASE("those who wait get their tokens after the last copy is destroyed")
    {
        fixture f(quick());
        REQUIRE(f.limiter.try_acquire("a").value());
        std::optional<error_code> ended;
        f.limiter.async_acquire("a", [&](error_code ec) { ended = ec; });
        f.limiter = {};
        test::run_until(f.io, [&] { return ended.has_value(); });
        CHECK_FALSE(*ended);
    }

    TEST_CASE("an execution context that is destroyed destroys those who wait, also if they own the limiter")
    {
        auto token = std::make_shared<int>();
        rate_limiter kept;
        {
            asio::io_context io;
            auto limiter = rate_limiter::create(io.get_executor(), three()).value();
            REQUIRE(limiter.try_acquire("a", 3).value());
            limiter.async_acquire("a", [limiter, token](error_code) {});
            kept = limiter;
            CHECK(token.use_count() == 2);
        }
        CHECK(token.use_count() == 1);
        // Decisions need no execution context.
        CHECK(kept.try_acquire("b").value());
        kept.async_acquire("b", [token](error_code) {});
        CHECK(token.use_count() == 1);
    }

    TEST_CASE("any completion token, on the executor of the handler")
    {
        fixture f;
        auto future = f.limiter.async_acquire("a", asio::use_future);
        const auto strand = asio::make_strand(f.io);
        bool there = false;
        f.limiter.async_acquire(
            "a", asio::bind_executor(strand, [&](error_code) { there = strand.running_in_this_thread(); }));
        const auto wait = [](rate_limiter limiter) -> asio::awaitable<bool> {
            co_await limiter.async_acquire("b", asio::use_awaitable);
            const auto r = co_await limiter.async_acquire("b", 2, within(1s));
            co_return r.has_value();
        };
        CHECK(test::co_run(f.io, wait(f.limiter)));
        test::run_out(f.io);
        CHECK_NOTHROW(future.get());
        CHECK(there);
    }

    TEST_CASE("bad input is refused")
    {
        struct bad {
            void (*change)(rate_limiter_options&);
            const char* message;
        };
        const bad all[] = {
            {[](auto& o) { o.max_tenants = 0; }, "max_tenants is 0; it must be at least 1"},
            {[](auto& o) { o.others.rate = 0; }, "tenant others: rate is 0; it must be from 1 to 10^12"},
            {[](auto& o) { o.tenants["x"].burst = 0; }, "tenant x: burst is 0; it must be from 1 to 10^12"},
            {[](auto& o) { o.tenants["x"].period = 25h; },
             "tenant x: period is 90000 s; it must be above zero and at most a day"},
            {[](auto& o) { o.tenants["x"].period = 0ns; },
             "tenant x: period is 0; it must be above zero and at most a day"},
            {[](auto& o) { o.tenants[""]; }, "tenants has an empty name"},
        };
        fixture f;
        for (const bad& b : all) {
            rate_limiter_options o;
            b.change(o);
            const auto made = rate_limiter::create(f.io.get_executor(), o);
            REQUIRE_FALSE(made);
            CHECK(made.error() == errc::invalid_option);
            CHECK(made.error().message() == b.message);
        }
        CHECK(f.limiter.try_acquire("a", 4).error() == errc::invalid_argument);
        CHECK(rate_limiter().try_acquire("a").error() == errc::invalid_argument);
        const auto empty = test::await_elsewhere(rate_limiter().async_acquire("a"));
        REQUIRE_FALSE(empty);
        CHECK(empty.error() == errc::invalid_argument);
        rate_limiter().stop();
        CHECK(rate_limiter().stats().tenants.empty());
    }

    TEST_CASE("many threads take no more than there is")
    {
        constexpr int threads = 4;
        auto o = three();
        o.others.burst = 1000;
        fixture f(o);
        std::atomic<int> allowed = 0;
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&] {
                for (int i = 0; i < 1000; ++i)
                    if (f.limiter.try_acquire("a").value())
                        ++allowed;
            });
        for (auto& t : all)
            t.join();
        CHECK(allowed == 1000);
    }

    TEST_CASE("many threads wait")
    {
        constexpr int clients = 20;
        constexpr int each = 20;
        asio::io_context io;
        auto o = quick();
        o.others = {.rate = 1, .period = 50us, .burst = 2};
        const auto limiter = rate_limiter::create(io.get_executor(), o).value();
        std::atomic<int> got = 0;
        const auto client = [&](std::string tenant) -> asio::awaitable<void> {
            for (int i = 0; i < each; ++i)
                if (co_await limiter.async_acquire(tenant))
                    ++got;
        };
        for (int c = 0; c < clients; ++c)
            asio::co_spawn(asio::make_strand(io), client(std::to_string(c % 3)), asio::detached);
        std::vector<std::thread> all;
        for (int t = 0; t < 4; ++t)
            all.emplace_back([&io] { io.run(); });
        for (auto& t : all)
            t.join();
        CHECK(got == clients * each);
    }

    TEST_CASE("metrics of configured tenants and of all others")
    {
        auto o = three();
        o.tenants["known"] = {.rate = 1, .period = 24h, .burst = 5};
        fixture f(o);
        const telemetry::registry metrics(f.io.get_executor());
        const auto registered = f.limiter.report_to(metrics);
        CHECK(f.limiter.try_acquire("known", 2).value());
        for (int i = 0; i < 4; ++i)
            (void)f.limiter.try_acquire("guest");
        const auto all = test::await(f.io, metrics.async_collect()).value();
        const auto text = telemetry::to_text(all);
        const auto has = [&](const char* line) { CHECK_MESSAGE(text.find(line) != std::string::npos, line); };
        has(R"(coaccel_rate_limiter_requests_total{limiter="limiter",tenant="known",outcome="allowed"} 1)");
        has(R"(coaccel_rate_limiter_requests_total{limiter="limiter",tenant="",outcome="allowed"} 3)");
        has(R"(coaccel_rate_limiter_requests_total{limiter="limiter",tenant="",outcome="refused"} 1)");
        has(R"(coaccel_rate_limiter_tokens{limiter="limiter",tenant="known"} 3)");
        has(R"(coaccel_rate_limiter_tenants{limiter="limiter"} 2)");
        has("coaccel_telemetry_dropped_samples_total 0");
    }
}

} // namespace test_serve_rate_limiter
