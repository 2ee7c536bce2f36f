#include "swap_fixture.hpp"

#include <coaccel/core/log.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace test_serve_hot_swap_rollback {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::hot_swap_options;
using serve::rollback_options;
using serve::swap_change;
using serve::version_state;
using fixture = test::swap_fixture;

constexpr auto by_hand = std::chrono::nanoseconds::max();

/// Rolls back if more than half of at least four requests fail, whenever they end.
hot_swap_options strict()
{
    hot_swap_options o;
    o.confirm_after = by_hand;
    o.rollback = {.max_failure_share = 0.5, .min_requests = 4, .max_requests = 100, .window = 0s};
    return o;
}

/// Collects what is logged.
class log_lines {
public:
    log_lines()
    {
        // Those of earlier tests still wait.
        REQUIRE(flush_log(10s));
        set_log_sink(log_level::warning, [this](log_level, std::string_view text) {
            const std::scoped_lock lock(mutex_);
            lines_.emplace_back(text);
        });
    }
    ~log_lines() { set_log_sink(log_level::warning, {}); }

    std::vector<std::string> take()
    {
        REQUIRE(flush_log(10s));
        const std::scoped_lock lock(mutex_);
        return std::exchange(lines_, {});
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

TEST_SUITE("hot_swap rollback")
{
    TEST_CASE("by hand the previous version comes back at once, and the other one is drained")
    {
        fixture f({.confirm_after = by_hand});
        f.load("a");
        f.load("b");
        auto on_b = f.swap.pick().value();
        CHECK(f.version(1).state == version_state::previous);
        REQUIRE(f.swap.roll_back());
        CHECK(f.swap.pick().value().version() == 1);
        f.settle();
        CHECK(f.version(2).state == version_state::draining);
        on_b.ended({});
        f.settle();
        CHECK_FALSE(f.exists(2));
        CHECK(f.states[1]->drains == 1);
        CHECK(f.states[0]->drains == 0);
        const auto s = f.swap.stats();
        CHECK(s.rolled_back_by_hand == 1);
        CHECK(s.last_rollback.version == 2);
        CHECK(s.last_rollback.name == "b");
        CHECK_FALSE(s.last_rollback.reason);
        const auto again = f.swap.roll_back();
        REQUIRE_FALSE(again);
        CHECK(again.error() == errc::invalid_argument);
        CHECK(again.error().message() == "model: roll_back: there is no previous version; the current one is 1");
    }

    TEST_CASE("the version that was meant can be named")
    {
        fixture f({.confirm_after = by_hand});
        f.load("a");
        f.load("b");
        CHECK(f.swap.roll_back(1).error().message() == "model: roll_back: version 1 is not the current one; that is 2");
        CHECK(f.swap.confirm(1).error().message() == "model: confirm: version 1 is not the current one; that is 2");
        REQUIRE(f.swap.roll_back(2));
        CHECK(f.swap.stats().current == 1);
    }

    TEST_CASE("after the confirmation there is no way back")
    {
        fixture f({.confirm_after = by_hand});
        CHECK(f.swap.confirm().error() == errc::invalid_argument);
        f.load("a");
        // There is nothing to return to, so there is nothing to do.
        REQUIRE(f.swap.confirm());
        f.load("b");
        REQUIRE(f.swap.confirm(2));
        REQUIRE(f.swap.confirm(2));
        f.settle();
        CHECK_FALSE(f.exists(1));
        CHECK(f.states[0]->drains == 1);
        CHECK_FALSE(f.swap.roll_back());
        CHECK(f.swap.stats().confirmed == 1);
        CHECK(f.count(swap_change::confirmed) == 1);
    }

    TEST_CASE("a version is confirmed after confirm_after")
    {
        fixture f({.confirm_after = 1ms});
        f.load("a");
        f.load("b");
        test::run_until(f.io, [&] { return f.swap.stats().confirmed == 1; });
        test::run_until(f.io, [&] { return !f.exists(1); });
        CHECK(f.swap.stats().current == 2);
    }

    TEST_CASE("a third version replaces the previous one")
    {
        fixture f({.confirm_after = by_hand});
        f.load("a");
        f.load("b");
        f.load("c");
        f.settle();
        CHECK_FALSE(f.exists(1));
        REQUIRE(f.swap.roll_back());
        CHECK(f.swap.stats().current == 2);
        CHECK_FALSE(f.swap.roll_back());
    }

    TEST_CASE("by the rule the previous version comes back, and the bad one is reported and never tried again")
    {
        log_lines lines;
        fixture f(strict());
        f.load("a");
        f.requests(10, errc::backend_error);
        CHECK(f.swap.stats().current == 1);
        f.load("b");
        // Requests of the old version do not count for the new one.
        f.requests(2, {});
        f.requests(2, errc::backend_error);
        CHECK(f.swap.stats().current == 2);
        f.requests(1, errc::out_of_memory);
        CHECK(f.swap.stats().current == 1);
        CHECK(f.swap.stats().previous == 0);
        f.settle();
        CHECK(f.states[1]->drains == 1);
        CHECK_FALSE(f.exists(2));
        const auto s = f.swap.stats();
        CHECK(s.rolled_back_by_rule == 1);
        CHECK(s.last_rollback.version == 2);
        CHECK(s.last_rollback.reason == errc::out_of_memory);
        const std::string text =
            "version 2 (b) was rolled back: 3 of the last 5 requests failed, the last of them with: ";
        CHECK(s.last_rollback.message.starts_with(text));
        CHECK(f.count(swap_change::rolled_back) == 1);
        const auto logged = lines.take();
        REQUIRE(logged.size() == 1);
        CHECK(logged[0].starts_with("hot_swap model: " + text));
        // It has no way back, so whatever it does it stays.
        f.requests(100, errc::backend_error);
        f.settle();
        CHECK(f.swap.stats().current == 1);
        CHECK(f.swap.stats().rolled_back_by_rule == 1);
        CHECK(f.load("b again") == 3);
        CHECK(f.swap.stats().current == 3);
    }

    TEST_CASE("requests that end after the rollback change nothing")
    {
        fixture f(strict());
        f.load("a");
        f.load("b");
        std::vector<serve::version_lease<test::fake_version>> leases;
        for (int i = 0; i < 20; ++i)
            leases.push_back(f.swap.pick().value());
        for (auto& l : leases)
            l.ended(errc::backend_error);
        f.settle();
        CHECK(f.swap.stats().rolled_back_by_rule == 1);
        CHECK(f.swap.stats().current == 1);
        CHECK(f.swap.stats().failed == 20);
        CHECK_FALSE(f.exists(2));
    }

    TEST_CASE("errors that are no fault of the version do not count")
    {
        for (const error_code ec : {make_error_code(errc::invalid_argument), make_error_code(errc::wrong_dtype),
                                    make_error_code(errc::length_mismatch), make_error_code(errc::queue_full),
                                    error_code(asio::error::operation_aborted)}) {
            fixture f(strict());
            f.load("a");
            f.load("b");
            f.requests(50, ec);
            f.swap.pick().value().release();
            CHECK(f.swap.stats().current == 2);
            CHECK(f.swap.stats().other == 51);
            // They do not hide failures either.
            f.requests(4, errc::context_lost);
            CHECK(f.swap.stats().current == 1);
        }
        for (const errc e : {errc::deadline_exceeded, errc::device_failed, errc::actor_stopped, errc::user_exception,
                             errc::out_of_memory, errc::context_lost, errc::unsupported_op})
            CHECK(serve::is_version_failure(e));
        CHECK_FALSE(serve::is_version_failure({}));
        CHECK(serve::is_version_failure(asio::error::connection_reset));
    }

    TEST_CASE("the program can decide which errors count")
    {
        auto o = strict();
        o.rollback.is_failure = [](const error_code& ec) { return ec == errc::wrong_dtype; };
        fixture f(o);
        f.load("a");
        f.load("b");
        f.requests(50, errc::backend_error);
        CHECK(f.swap.stats().current == 2);
        f.requests(4, errc::wrong_dtype);
        CHECK(f.swap.stats().current == 1);
    }

    TEST_CASE("a load that is in progress during a rollback goes on")
    {
        fixture f(strict());
        f.load("a");
        f.load("b");
        test::door d;
        const auto c = f.start(f.slow_source("c", d));
        test::run_until(f.io, [&] { return d.inside() == 1; });
        f.requests(4, errc::backend_error);
        CHECK(f.swap.stats().current == 1);
        d.open();
        CHECK_FALSE(f.outcome(c));
        CHECK(f.swap.stats().current == 3);
        CHECK(f.swap.stats().previous == 1);
    }

    TEST_CASE("a listener that throws disturbs nothing")
    {
        log_lines lines;
        asio::io_context io;
        hot_swap_options o;
        o.on_event = [](const serve::swap_event&) { throw std::runtime_error("no"); };
        auto swap = serve::hot_swap<int>::create(io.get_executor(), o).value();
        serve::version_source<int> one;
        one.load = []() -> asio::awaitable<result<int>> { co_return 1; };
        REQUIRE(test::await(io, swap.async_load(one)));
        const auto logged = lines.take();
        REQUIRE(logged.size() == 1);
        CHECK(logged[0] == "hot_swap hot_swap: on_event threw an exception");
    }
}

} // namespace test_serve_hot_swap_rollback
