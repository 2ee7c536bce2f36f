#include "swap_fixture.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace test_serve_hot_swap_ends {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::hot_swap_options;
using serve::swap_change;
using serve::version_state;
using test::fake_version;
using fixture = test::swap_fixture;

struct stop_call {
    int completions = 0;
    error_code ec;
    asio::cancellation_signal signal;
};

std::shared_ptr<stop_call> stop(fixture& f, coaccel::shutdown mode)
{
    auto c = std::make_shared<stop_call>();
    f.swap.async_shutdown(mode, asio::bind_cancellation_slot(c->signal.slot(), [c](error_code ec) {
                              ++c->completions;
                              c->ec = ec;
                          }));
    return c;
}

void wait_for(fixture& f, const std::shared_ptr<stop_call>& c)
{
    test::run_until(f.io, [&] { return c->completions > 0; });
    CHECK(c->completions == 1);
}

TEST_SUITE("hot_swap ends")
{
    TEST_CASE("a version whose requests hang is shut down after drain_limit, and exists until they end")
    {
        fixture f({.drain_limit = 1ms, .confirm_after = 0s});
        f.load("a");
        auto hung = f.swap.pick().value();
        f.load("b");
        test::run_until(f.io, [&] { return f.states[0]->abandons == 1; });
        f.settle();
        CHECK(f.states[0]->drains == 0);
        CHECK(f.version(1).state == version_state::closed);
        CHECK(f.version(1).in_flight == 1);
        CHECK(f.swap.stats().overdue == 1);
        REQUIRE(f.count(swap_change::closed) == 1);
        CHECK(f.events.back().reason == errc::deadline_exceeded);
        CHECK(f.states[0].use_count() == 2);
        hung.ended(errc::actor_stopped);
        // Not destroyed on the path of the request.
        CHECK(f.states[0].use_count() == 2);
        f.settle();
        CHECK(f.states[0].use_count() == 1);
        CHECK_FALSE(f.exists(1));
    }

    TEST_CASE("a version whose shutdown hangs is given up")
    {
        fixture f({.drain_limit = 1ms, .confirm_after = 0s});
        f.load("a");
        f.states[0]->hangs = true;
        f.load("b");
        test::run_until(f.io, [&] { return !f.exists(1); });
        CHECK(f.states[0]->drains == 1);
        CHECK(f.states[0]->abandons == 1);
        CHECK(f.swap.stats().overdue == 1);
        // Its late end changes nothing.
        for (const auto& done : f.states[0]->waiting)
            done();
        f.states[0]->waiting.clear();
        f.settle();
        CHECK(f.load("c") == 3);
    }

    TEST_CASE("without a drain limit the last request is waited for")
    {
        fixture f({.drain_limit = 0s, .confirm_after = 0s});
        f.load("a");
        auto lease = f.swap.pick().value();
        f.load("b");
        f.settle();
        CHECK(f.version(1).state == version_state::draining);
        lease.release();
        f.settle();
        CHECK_FALSE(f.exists(1));
    }

    TEST_CASE("a drain waits for requests, and everything afterwards is refused")
    {
        fixture f;
        f.load("a");
        f.load("b");
        auto lease = f.swap.pick().value();
        const auto stopping = stop(f, shutdown::drain);
        CHECK(f.swap.pick().error() == errc::actor_stopped);
        CHECK(f.swap.pick().error().message() == "model: it has been stopped");
        CHECK(f.swap.roll_back().error() == errc::actor_stopped);
        CHECK(f.swap.confirm().error() == errc::actor_stopped);
        const auto ec = f.outcome(f.start(f.source("c")));
        CHECK(ec == errc::actor_stopped);
        CHECK(ec.message() == "model: version \"c\": the hot_swap has been stopped");
        f.settle();
        CHECK(f.states[0]->drains == 1);
        CHECK(stopping->completions == 0);
        lease.ended({});
        wait_for(f, stopping);
        CHECK_FALSE(stopping->ec);
        CHECK(f.states[1]->drains == 1);
        CHECK(f.swap.stats().versions.empty());
        // A second one has nothing to do.
        wait_for(f, stop(f, shutdown::abandon));
    }

    TEST_CASE("abandon does not wait for requests, also after a drain")
    {
        bool drains_first = false;
        SUBCASE("at once") {}
        SUBCASE("after a drain")
        {
            drains_first = true;
        }
        fixture f({.drain_limit = 0s});
        f.load("a");
        auto lease = f.swap.pick().value();
        std::shared_ptr<stop_call> first;
        if (drains_first)
            first = stop(f, shutdown::drain);
        f.settle();
        const auto second = stop(f, shutdown::abandon);
        wait_for(f, second);
        if (first)
            wait_for(f, first);
        CHECK(f.states[0]->abandons == 1);
        CHECK(f.version(1).state == version_state::closed);
        lease.ended(errc::actor_stopped);
        f.settle();
        CHECK_FALSE(f.exists(1));
    }

    TEST_CASE("the wait for a shutdown can be cancelled, and the shutdown goes on")
    {
        fixture f;
        f.load("a");
        auto lease = f.swap.pick().value();
        const auto stopping = stop(f, shutdown::drain);
        stopping->signal.emit(asio::cancellation_type::total);
        wait_for(f, stopping);
        CHECK(stopping->ec == asio::error::operation_aborted);
        lease.ended({});
        f.settle();
        CHECK(f.states[0]->drains == 1);
    }

    TEST_CASE("a shutdown ends the loads at every stage")
    {
        for (const auto mode : {shutdown::drain, shutdown::abandon}) {
            for (const std::string stage : {"begins", "loads", "warms up"}) {
                CAPTURE(stage);
                fixture f;
                f.load("a");
                test::door d;
                const auto b = f.start(stage == "warms up" ? f.slow_warm_up("b", d) : f.slow_source("b", d));
                const auto c = f.start(f.source("c"));
                if (stage != "begins")
                    test::run_until(f.io, [&] { return d.inside() == 1; });
                const auto stopping = stop(f, mode);
                CHECK(f.outcome(b) == errc::actor_stopped);
                CHECK(b->ec.message() == "model: version 2 (b): the hot_swap has been stopped");
                CHECK(f.outcome(c) == errc::actor_stopped);
                wait_for(f, stopping);
                if (stage == "warms up")
                    CHECK(f.states[1]->drains + f.states[1]->abandons == 1);
                CHECK(f.states[0]->drains == (mode == shutdown::drain ? 1 : 0));
                CHECK(f.states[0]->abandons == (mode == shutdown::drain ? 0 : 1));
                CHECK(f.swap.stats().versions.empty());
                test::run_out(f.io);
                for (const auto& s : f.states)
                    CHECK(s.use_count() == 1);
            }
        }
    }

    TEST_CASE("a shutdown during a drain and during a rollback waits for these versions, too")
    {
        fixture f({.confirm_after = std::chrono::nanoseconds::max()});
        f.load("a");
        f.load("b");
        auto on_b = f.swap.pick().value();
        REQUIRE(f.swap.roll_back());
        auto on_a = f.swap.pick().value();
        const auto stopping = stop(f, shutdown::drain);
        f.settle();
        CHECK(stopping->completions == 0);
        on_a.ended({});
        f.settle();
        CHECK(stopping->completions == 0);
        on_b.ended({});
        wait_for(f, stopping);
    }

    TEST_CASE("a version that was loaded although its load has ended is shut down, too")
    {
        for (const std::string how : {"cancelled", "late", "stopped"}) {
            CAPTURE(how);
            fixture f({.load_limit = how == "late" ? 1ms : 0ms});
            test::door d;
            const auto a = f.start(f.slow_source("a", d));
            test::run_until(f.io, [&] { return d.inside() == 1 || a->ended(); });
            if (how == "cancelled")
                a->signal.emit(asio::cancellation_type::terminal);
            if (how == "stopped")
                stop(f, shutdown::abandon);
            CHECK(f.outcome(a));
            // The function ignores its cancellation, and returns a version.
            test::run_until(f.io, [&] { return f.states[0]->drains > 0; });
            f.settle();
            CHECK(f.states[0]->drains == 1);
            CHECK(f.states[0]->abandons == 0);
            CHECK(f.states[0].use_count() == 1);
            CHECK(f.swap.stats().versions.empty());
        }
    }

    TEST_CASE("such a version exists until its shutdown has ended")
    {
        fixture f;
        test::door d;
        const auto a = f.start(f.slow_source("a", d));
        f.states[0]->hangs = true;
        test::run_until(f.io, [&] { return d.inside() == 1; });
        a->signal.emit(asio::cancellation_type::terminal);
        CHECK(f.outcome(a) == asio::error::operation_aborted);
        test::run_until(f.io, [&] { return f.states[0]->drains > 0; });
        f.settle();
        CHECK(f.states[0].use_count() == 2);
        f.states[0]->waiting[0]();
        f.states[0]->waiting.clear();
        CHECK(f.states[0].use_count() == 1);
    }

    TEST_CASE("after the last copy the requests end, and the versions are shut down")
    {
        fixture f;
        f.load("a");
        f.load("b");
        auto lease = f.swap.pick().value();
        f.swap = {};
        f.settle();
        CHECK(f.states[0]->drains == 1);
        CHECK(f.states[1]->drains == 0);
        CHECK(lease.version() == 2);
        lease.ended({});
        test::run_out(f.io);
        CHECK(f.states[1]->drains == 1);
        CHECK(f.states[1].use_count() == 1);
    }

    TEST_CASE("a load that is in progress ends with the last copy")
    {
        fixture f;
        test::door d;
        const auto a = f.start(f.slow_source("a", d));
        test::run_until(f.io, [&] { return d.inside() == 1; });
        f.swap = {};
        CHECK(f.outcome(a) == errc::actor_stopped);
        test::run_out(f.io);
        CHECK(f.states[0].use_count() == 1);
    }

    TEST_CASE("a hot_swap and its leases may outlive their execution context, at every stage")
    {
        for (const std::string stage : {"new", "loading", "warming up", "serving", "draining", "closing", "stopping"}) {
            CAPTURE(stage);
            auto state = std::make_shared<fake_version::state>();
            using swap_type = fixture::swap_type;
            swap_type kept;
            serve::version_lease<fake_version> lease;
            const auto fails = [state](auto&&...) { FAIL("not called"); };
            {
                asio::io_context io;
                auto swap = swap_type::create(io.get_executor(), {.confirm_after = 0s}).value();
                kept = swap;
                test::door d;
                const auto load = [&](bool slow_load, bool slow_warm_up) {
                    fixture::source_type s;
                    // The functions and the handler own the hot_swap.
                    s.load = [state, &d, slow_load, swap]() -> asio::awaitable<result<fake_version>> {
                        if (slow_load)
                            co_await d.pass();
                        co_return fake_version(state);
                    };
                    s.warm_up = [&d, slow_warm_up, swap](const fake_version&) -> asio::awaitable<result<void>> {
                        if (slow_warm_up)
                            co_await d.pass();
                        co_return outcome::success();
                    };
                    return s;
                };
                if (stage == "loading" || stage == "warming up") {
                    swap.async_load(load(stage == "loading", stage != "loading"), fails);
                    swap.async_load(load(false, false), fails);
                    test::run_until(io, [&] { return d.inside() == 1; });
                } else if (stage != "new") {
                    REQUIRE(test::await(io, swap.async_load(load(false, false))));
                    lease = swap.pick().value();
                    state->hangs = stage == "closing";
                    if (stage == "draining" || stage == "closing") {
                        REQUIRE(test::await(io, swap.async_load(load(false, false))));
                        if (stage == "closing")
                            lease.release();
                        io.poll();
                    }
                    if (stage == "stopping") {
                        swap.async_shutdown(shutdown::drain, fails);
                        io.poll();
                    }
                }
                swap = {};
            }
            kept.async_load({}, fails);
            kept.async_shutdown(shutdown::drain, fails);
            CHECK_FALSE(kept.pick());
            CHECK_FALSE(kept.roll_back());
            if (lease) {
                // Its version still exists: besides this variable and `fails`, it has the state.
                CHECK(state.use_count() == 3);
                lease.ended({});
            }
            state->waiting.clear();
            kept = {};
            // One is in `fails`.
            CHECK(state.use_count() == 2);
        }
    }
}

} // namespace test_serve_hot_swap_ends
