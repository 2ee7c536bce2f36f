#include "await_elsewhere.hpp"
#include "swap_fixture.hpp"

#include <coaccel/core/log.hpp>
#include <coaccel/telemetry/exposition.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <mutex>
#include <stdexcept>

namespace test_serve_hot_swap {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::hot_swap_options;
using serve::swap_change;
using serve::version_state;
using test::fake_version;
using fixture = test::swap_fixture;

TEST_SUITE("hot_swap")
{
    TEST_CASE("there is no version before the first load, and the loaded one afterwards")
    {
        fixture f;
        const auto none = f.swap.pick();
        REQUIRE_FALSE(none);
        CHECK(none.error() == errc::actor_stopped);
        CHECK(none.error().message() == "model: no version is loaded");
        CHECK(f.load("a") == 1);
        auto lease = f.swap.pick().value();
        CHECK(lease.version() == 1);
        lease.ended({});
        CHECK_FALSE(lease);
        const auto s = f.swap.stats();
        CHECK(s.current == 1);
        CHECK(s.previous == 0);
        CHECK(s.refused == 1);
        CHECK(s.completed == 1);
        REQUIRE(s.versions.size() == 1);
        CHECK(s.versions[0].name == "a");
        CHECK(s.versions[0].state == version_state::current);
    }

    TEST_CASE("a request keeps the version that it has taken, and the old one ends after its last request")
    {
        fixture f({.confirm_after = 0s});
        f.load("a");
        auto old = f.swap.pick().value();
        f.load("b");
        auto next = f.swap.pick().value();
        CHECK(old.version() == 1);
        CHECK(next.version() == 2);
        f.settle();
        CHECK(f.version(1).state == version_state::draining);
        CHECK(f.states[0]->drains == 0);
        old.ended({});
        // The shutdown is not on the path of the request.
        CHECK(f.states[0]->drains == 0);
        f.settle();
        CHECK(f.states[0]->drains == 1);
        CHECK(f.states[0]->abandons == 0);
        CHECK_FALSE(f.exists(1));
        CHECK(f.states[0].use_count() == 1);
        CHECK(f.states[1]->drains == 0);
    }

    TEST_CASE("the new version is warmed up beside the old one, which answers meanwhile")
    {
        fixture f;
        f.load("a");
        test::door d;
        const auto loading = f.start(f.slow_warm_up("b", d));
        test::run_until(f.io, [&] { return d.inside() == 1; });
        CHECK(f.version(2).state == version_state::warming_up);
        CHECK(f.swap.pick().value().version() == 1);
        CHECK_FALSE(loading->ended());
        d.open();
        CHECK_FALSE(f.outcome(loading));
        CHECK(loading->version == 2);
        CHECK(f.swap.pick().value().version() == 2);
    }

    TEST_CASE("a version that cannot be loaded changes nothing, and the error names it and the step")
    {
        using loaded = result<fake_version>;
        struct failure {
            const char* what;
            std::function<loaded()> how;
            errc expected;
            std::string message;
        };
        const failure table[] = {
            {"an error of the library", [] { return loaded(errc::file_invalid); }, errc::file_invalid,
             "model: version 2 (b): loading failed: a file is damaged or of another kind"},
            {"an error of another library", [] { return loaded(asio::error::connection_refused); }, errc::start_failed,
             "model: version 2 (b): loading failed: Connection refused"},
            {"an exception", []() -> loaded { throw std::runtime_error("no disk"); }, errc::user_exception,
             "model: version 2 (b): loading failed: the function threw: no disk"},
            {"another exception", []() -> loaded { throw 1; }, errc::user_exception,
             "model: version 2 (b): loading failed: the function threw: something that is no std::exception"},
        };
        for (const failure& row : table) {
            CAPTURE(row.what);
            fixture f;
            f.load("a");
            fixture::source_type bad;
            bad.name = "b";
            bad.load = [how = row.how]() -> asio::awaitable<loaded> { co_return how(); };
            const auto ec = f.outcome(f.start(bad));
            CHECK(ec == row.expected);
            CHECK(ec.message() == row.message);
            CHECK(f.swap.pick().value().version() == 1);
            f.settle();
            CHECK_FALSE(f.exists(2));
            CHECK(f.states[0]->drains == 0);
            CHECK(f.swap.stats().loads_failed == 1);
            REQUIRE(f.events.size() == 2);
            CHECK(f.events[1].what == swap_change::load_failed);
            CHECK(f.events[1].name == "b");
            CHECK(f.events[1].reason == row.expected);
            // The next load is not affected.
            CHECK(f.load("c") == 3);
        }
    }

    TEST_CASE("a version whose warm-up fails is shut down, and the other one goes on")
    {
        using warmed = result<void>;
        const std::function<warmed()> table[] = {
            [] { return warmed(errc::out_of_memory); },
            []() -> warmed { throw std::runtime_error("no memory"); },
        };
        for (const auto& how : table) {
            fixture f;
            f.load("a");
            auto bad = f.source("b");
            bad.warm_up = [how](const fake_version&) -> asio::awaitable<warmed> { co_return how(); };
            const auto ec = f.outcome(f.start(bad));
            CHECK((ec == errc::out_of_memory || ec == errc::user_exception));
            CHECK(ec.message().starts_with("model: version 2 (b): the warm-up failed: "));
            f.settle();
            CHECK(f.states[1]->drains == 1);
            CHECK(f.states[0]->drains == 0);
            CHECK(f.swap.stats().current == 1);
            CHECK(f.swap.stats().versions.size() == 1);
        }
    }

    TEST_CASE("an empty source and an empty version are refused")
    {
        fixture f;
        fixture::source_type none;
        none.name = "x";
        const auto ec = f.outcome(f.start(none));
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == "model: version \"x\": version_source: load is empty");
        using pointer = std::shared_ptr<int>;
        auto pointers = serve::hot_swap<pointer>::create(f.io.get_executor()).value();
        serve::version_source<pointer> null;
        null.name = "null";
        null.load = []() -> asio::awaitable<result<pointer>> { co_return pointer(); };
        const auto refused = test::await(f.io, pointers.async_load(null));
        REQUIRE_FALSE(refused);
        CHECK(refused.error() == errc::invalid_argument);
        // A number is not empty.
        auto numbers = serve::hot_swap<int>::create(f.io.get_executor()).value();
        serve::version_source<int> zero;
        zero.load = []() -> asio::awaitable<result<int>> { co_return 0; };
        REQUIRE(test::await(f.io, numbers.async_load(zero)));
        CHECK(*numbers.pick().value() == 0);
    }

    TEST_CASE("bad options and an empty hot_swap are refused")
    {
        asio::io_context io;
        CHECK(fixture::swap_type::create(io.get_executor(), {.drain_limit = -1s}).error() == errc::invalid_option);
        const fixture::swap_type empty;
        CHECK_FALSE(empty);
        CHECK(empty.pick().error() == errc::invalid_argument);
        CHECK(empty.roll_back().error() == errc::invalid_argument);
        CHECK(empty.confirm().error() == errc::invalid_argument);
        CHECK(empty.stats().versions.empty());
        CHECK(test::await_elsewhere(empty.async_shutdown(shutdown::drain)).error() == errc::invalid_argument);
        CHECK(test::await_elsewhere(empty.async_load(fixture::source_type())).error() == errc::invalid_argument);
    }

    TEST_CASE("loads wait for each other, and too many are refused")
    {
        fixture f({.max_waiting_loads = 1});
        test::door first;
        test::door second;
        const auto a = f.start(f.slow_source("a", first));
        const auto b = f.start(f.slow_source("b", second));
        const auto c = f.start(f.source("c"));
        const auto ec = f.outcome(c);
        CHECK(ec == errc::queue_full);
        CHECK(ec.message() == "model: version \"c\": version 1 (a) is being loaded, and 1 loads wait");
        test::run_until(f.io, [&] { return first.inside() == 1; });
        CHECK(second.inside() == 0);
        CHECK(f.version(2).state == version_state::waiting);
        first.open();
        CHECK_FALSE(f.outcome(a));
        test::run_until(f.io, [&] { return second.inside() == 1; });
        second.open();
        CHECK_FALSE(f.outcome(b));
        CHECK(f.swap.stats().current == 2);
        CHECK(f.swap.stats().previous == 1);
    }

    TEST_CASE("loading and warming up have time limits, also for functions that ignore them")
    {
        SUBCASE("loading")
        {
            fixture f({.load_limit = 1ms});
            test::door d;
            const auto ec = f.outcome(f.start(f.slow_source("a", d)));
            CHECK(ec == errc::deadline_exceeded);
            CHECK(ec.message() == "model: version 1 (a): loading took longer than load_limit");
            test::run_until(f.io, [&] { return d.was_cancelled(); });
            // What it returns afterwards is dropped.
            test::run_until(f.io, [&] { return f.states[0].use_count() == 1; });
        }
        SUBCASE("warming up")
        {
            fixture f({.warm_up_limit = 1ms});
            test::door d;
            const auto ec = f.outcome(f.start(f.slow_warm_up("a", d)));
            CHECK(ec == errc::deadline_exceeded);
            CHECK(ec.message() == "model: version 1 (a): the warm-up took longer than warm_up_limit");
            test::run_until(f.io, [&] { return d.was_cancelled(); });
            test::run_until(f.io, [&] { return f.states[0]->drains == 1; });
        }
        SUBCASE("a function that ignores its cancellation")
        {
            // Long enough for the next load.
            fixture f({.load_limit = 1s});
            auto never = std::make_shared<asio::steady_timer>(f.io, asio::steady_timer::time_point::max());
            auto ignores = f.source("a");
            ignores.load = [never, s = f.states[0]]() -> asio::awaitable<result<fake_version>> {
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                (void)co_await never->async_wait(asio::as_tuple(asio::use_awaitable));
                co_return fake_version(s);
            };
            CHECK(f.outcome(f.start(ignores)) == errc::deadline_exceeded);
            CHECK(f.load("b") == 2);
            never->cancel();
            f.settle();
            CHECK(f.swap.stats().current == 2);
            CHECK(f.swap.stats().versions.size() == 1);
        }
    }

    TEST_CASE("a load can be cancelled until the switch")
    {
        fixture f;
        f.load("a");
        test::door d;
        SUBCASE("while it loads")
        {
            const auto c = f.start(f.slow_source("b", d));
            test::run_until(f.io, [&] { return d.inside() == 1; });
            c->signal.emit(asio::cancellation_type::total);
            CHECK(f.outcome(c) == asio::error::operation_aborted);
            test::run_until(f.io, [&] { return d.was_cancelled(); });
        }
        SUBCASE("while it is warmed up")
        {
            const auto c = f.start(f.slow_warm_up("b", d));
            test::run_until(f.io, [&] { return d.inside() == 1; });
            c->signal.emit(asio::cancellation_type::partial);
            CHECK(f.outcome(c) == asio::error::operation_aborted);
            f.settle();
            CHECK(f.states[1]->drains == 1);
        }
        SUBCASE("while it waits, and before it has begun")
        {
            const auto b = f.start(f.slow_source("b", d));
            const auto c = f.start(f.source("c"));
            c->signal.emit(asio::cancellation_type::terminal);
            b->signal.emit(asio::cancellation_type::terminal);
            CHECK(f.outcome(c) == asio::error::operation_aborted);
            CHECK(f.outcome(b) == asio::error::operation_aborted);
            CHECK(f.swap.stats().loads_cancelled == 2);
        }
        CHECK(f.swap.stats().current == 1);
        CHECK(f.load("d") > 1);
        // Too late.
        const auto late = f.start(f.source("e"));
        CHECK_FALSE(f.outcome(late));
        late->signal.emit(asio::cancellation_type::terminal);
        CHECK(f.swap.stats().current == late->version);
    }

    TEST_CASE("works with futures, and statistics are metrics")
    {
        fixture f;
        auto future = f.swap.async_load(f.source("a"), asio::use_future);
        test::run_until(f.io, [&] { return future.wait_for(0s) == std::future_status::ready; });
        CHECK(future.get() == 1);
        const telemetry::registry metrics(f.io.get_executor());
        const auto reported = f.swap.report_to(metrics);
        auto lease = f.swap.pick().value();
        const auto text = telemetry::to_text(test::await(f.io, metrics.async_collect()).value());
        for (const char* line : {"coaccel_swap_current_version{swap=\"model\"} 1",
                                 "coaccel_swap_versions{swap=\"model\",state=\"current\"} 1",
                                 "coaccel_swap_loads_total{swap=\"model\",outcome=\"switched\"} 1",
                                 "coaccel_swap_version_in_flight{swap=\"model\",version=\"a\",number=\"1\"} 1",
                                 "coaccel_swap_rollbacks_total{swap=\"model\",by=\"rule\"} 0",
                                 "coaccel_telemetry_dropped_samples_total 0"}) {
            CAPTURE(line);
            CHECK(text.find(line) != std::string::npos);
        }
    }
}

} // namespace test_serve_hot_swap
