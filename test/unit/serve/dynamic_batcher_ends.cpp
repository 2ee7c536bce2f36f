#include "actor/watch_access.hpp"
#include "await_elsewhere.hpp"
#include "held_lane.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>

namespace test_serve_dynamic_batcher_ends {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::batcher_options;
using serve::dynamic_batcher;
using test::batcher_fixture;
using test::held_lane;
using test::one_lane;
using test::row_runs;

namespace {

/// Whether the device keeps something that waits for a change of its state.
bool is_watched(const device& gpu)
{
    return detail::watch_access::has_waiters(gpu.watch_state());
}

} // namespace

TEST_SUITE("dynamic_batcher")
{
    TEST_CASE("batches of a device that fails run on another one")
    {
        fault_injector injector;
        auto o = test::device_fixture::on_host(test::device_fixture::with_mode(host_mode::pool));
        batcher_fixture f(o);
        o.host.injector = &injector;
        o.restart.max_restarts = 0;
        auto failing = test::make_device(f.io, o);
        auto made = test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{failing, f.gpu},
                                                                    std::vector{test::plus_one_model()}, {}));
        REQUIRE(made);
        const auto b = made.value();
        const auto all = f.start_many(b, 40);
        test::run_until(f.io, [&] { return b.stats().in_flight > 0; });
        injector.poison();
        f.check_right(all);
        test::run_until(f.io, [&] {
            f.check_right(f.start_many(b, 8));
            return failing.status().state == device_state::failed;
        });
        f.check_right(f.start_many(b, 40));
        CHECK(b.stats().failed == 0);
    }

    TEST_CASE("requests that wait start on a device as soon as it is revived")
    {
        fault_injector injector;
        auto o = one_lane();
        batcher_fixture f(o);
        o.host.injector = &injector;
        o.restart.max_restarts = 0;
        auto failing = test::make_device(f.io, o);
        auto made =
            test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{failing, f.gpu},
                                                            std::vector{test::plus_one_model()}, {.max_in_flight = 1}));
        REQUIRE(made);
        const auto b = made.value();
        for (int round = 0; round < 3; ++round) {
            injector.poison();
            CHECK(test::await(f.io, failing.async_upload(std::vector<float>(4))).error() == errc::context_lost);
            test::run_until(f.io, [&] { return failing.status().state == device_state::failed; });
            held_lane held(f);
            const auto first = f.start(b);
            test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
            const auto all = f.start_many(b, 8);
            test::run_until(f.io, [&] { return b.stats().queued[1] == 8; });
            REQUIRE(test::await(f.io, failing.async_revive()));
            f.check_right(all);
            CHECK_FALSE(first->ended());
            held.open();
            f.check_right({first});
        }
        CHECK(b.stats().failed == 0);
    }

    TEST_CASE("a batcher whose requests wait while one of its devices has stopped is idle")
    {
        batcher_fixture f(one_lane());
        auto other = test::make_device(f.io);
        auto made =
            test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{other, f.gpu},
                                                            std::vector{test::plus_one_model()}, {.max_in_flight = 1}));
        REQUIRE(made);
        const auto b = made.value();
        REQUIRE(test::await(f.io, other.async_shutdown(shutdown::drain)));
        held_lane held(f);
        const auto all = f.start_many(b, 8);
        test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
        // Several, because on a loaded machine one of them may end before anything could run.
        int idle = 0;
        for (int i = 0; i < 1000 && idle < 20; ++i)
            idle = f.io.run_for(1ms) == 0 ? idle + 1 : 0;
        CHECK(idle == 20);
        held.open();
        f.check_right(all);
    }

    TEST_CASE("a batcher that waits for a device to be revived keeps no executor running, and may be destroyed")
    {
        fault_injector injector;
        auto o = one_lane();
        batcher_fixture f(o);
        o.host.injector = &injector;
        o.restart.max_restarts = 0;
        auto failing = test::make_device(f.io, o);
        auto made =
            test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{failing, f.gpu},
                                                            std::vector{test::plus_one_model()}, {.max_in_flight = 1}));
        REQUIRE(made);
        auto b = std::move(made.value());
        injector.poison();
        CHECK(test::await(f.io, failing.async_upload(std::vector<float>(4))).error() == errc::context_lost);
        test::run_until(f.io, [&] { return failing.status().state == device_state::failed; });
        row_runs all;
        {
            held_lane held(f);
            all = f.start_many(b, 8);
            test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
        }
        f.check_right(all);
        test::run_out(f.io);
        CHECK(is_watched(failing));
        b = {};
        test::run_out(f.io);
        CHECK_FALSE(is_watched(failing));
        CHECK(test::await(f.io, failing.async_revive()));
    }

    TEST_CASE("a device keeps nothing of batchers that have ended, however many there were")
    {
        fault_injector injector;
        auto o = one_lane();
        batcher_fixture f(o);
        o.host.injector = &injector;
        o.restart.max_restarts = 0;
        auto failing = test::make_device(f.io, o);
        std::vector<dynamic_batcher> all;
        for (int i = 0; i < 3; ++i) {
            auto made =
                test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{failing, f.gpu},
                                                                std::vector{test::plus_one_model()}, {}));
            REQUIRE(made);
            all.push_back(std::move(made.value()));
        }
        injector.poison();
        CHECK(test::await(f.io, failing.async_upload(std::vector<float>(4))).error() == errc::context_lost);
        test::run_until(f.io, [&] { return failing.status().state == device_state::failed; });
        CHECK_FALSE(is_watched(failing));
        for (const auto& b : all)
            f.check_right(f.start_many(b, 8));
        for (const auto mode : {shutdown::drain, shutdown::abandon}) {
            CHECK(is_watched(failing));
            CHECK(test::await(f.io, all.back().async_shutdown(mode)));
            all.pop_back();
        }
        CHECK(is_watched(failing));
        f.check_right(f.start_many(all.front(), 8));
        all.clear();
        test::run_out(f.io);
        CHECK_FALSE(is_watched(failing));
    }

    TEST_CASE("a device keeps nothing of a batcher whose execution context is destroyed")
    {
        fault_injector injector;
        auto o = one_lane();
        asio::io_context devices(1);
        const auto working = test::make_device(devices, o);
        o.host.injector = &injector;
        o.restart.max_restarts = 0;
        const auto failing = test::make_device(devices, o);
        {
            asio::io_context io(1);
            const auto run_both_until = [&](auto done) {
                test::run_until(io, [&] {
                    io.restart();
                    devices.restart();
                    devices.poll();
                    return done();
                });
            };
            std::optional<result<dynamic_batcher>> made;
            dynamic_batcher::async_create(io.get_executor(), std::vector{failing, working},
                                          std::vector{test::plus_one_model()}, {},
                                          as_result([&](result<dynamic_batcher> r) { made = std::move(r); }));
            run_both_until([&] { return made.has_value(); });
            REQUIRE(*made);
            injector.poison();
            CHECK(test::await(devices, failing.async_upload(std::vector<float>(4))).error() == errc::context_lost);
            test::run_until(devices, [&] { return failing.status().state == device_state::failed; });
            std::vector<float> x(4);
            std::vector<float> y(4);
            std::optional<error_code> ended;
            made->value().async_run(from(x), to(y), [&](error_code ec) { ended = ec; });
            run_both_until([&] { return ended.has_value(); });
            CHECK_FALSE(*ended);
            CHECK(is_watched(failing));
        }
        CHECK_FALSE(is_watched(failing));
    }

    TEST_CASE("a batcher whose device's execution context is destroyed answers its requests")
    {
        asio::io_context io(1);
        dynamic_batcher b;
        {
            asio::io_context devices(1);
            auto gpu = test::make_device(devices);
            std::optional<result<dynamic_batcher>> made;
            dynamic_batcher::async_create(io.get_executor(), std::vector{gpu}, std::vector{test::plus_one_model()}, {},
                                          as_result([&](result<dynamic_batcher> r) { made = std::move(r); }));
            while (!made) {
                io.restart();
                io.run_for(1ms);
                devices.restart();
                devices.run_for(1ms);
            }
            REQUIRE(*made);
            b = std::move(made->value());
        }
        std::vector<float> x(4);
        std::vector<float> y(4);
        std::optional<error_code> ended;
        b.async_run(from(x), to(y), [&](error_code ec) { ended = ec; });
        test::run_until(io, [&] { return ended.has_value(); });
        CHECK(*ended);
        b = {};
        test::run_out(io);
    }

    TEST_CASE("a waiting request can be cancelled and leaves no trace")
    {
        for (const auto type :
             {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
            batcher_fixture f;
            const auto b = f.make({.max_delay = 1h, .delay = serve::delay_rule::fixed});
            const auto a = f.start(b, 1);
            f.io.poll();
            a->signal.emit(type);
            CHECK(f.outcome(a) == asio::error::operation_aborted);
            CHECK(b.stats().cancelled == 1);
            f.check_right(f.start_many(b, 4));
            CHECK(b.stats().rows == 4);
        }
    }

    TEST_CASE("a request of a running batch can be given up at once, and the batch goes on without it")
    {
        batcher_fixture f(one_lane());
        const auto b = f.make();
        held_lane held(f);
        const auto all = f.start_many(b, 4);
        test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
        all[1]->signal.emit(asio::cancellation_type::total);
        all[2]->signal.emit(asio::cancellation_type::terminal);
        CHECK(f.outcome(all[2]) == asio::error::operation_aborted);
        CHECK_FALSE(all[1]->ended());
        held.open();
        f.check_right({all[0], all[1], all[3]});
        CHECK(all[2]->y == std::vector<float>(4, -1));
    }

    TEST_CASE("deadlines hold while a request waits and while its batch runs")
    {
        batcher_fixture f(one_lane());
        SUBCASE("waiting")
        {
            const auto b = f.make({.max_in_flight = 1});
            held_lane held(f);
            const auto running = f.start(b);
            test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
            CHECK(f.outcome(f.start(b, 0, 1, within(1ms))) == errc::deadline_exceeded);
            CHECK(b.stats().expired == 1);
            held.open();
            f.check_right({running});
        }
        SUBCASE("a deadline shorter than the delay")
        {
            const auto b = f.make({.max_delay = 1h, .delay = serve::delay_rule::fixed});
            f.check_right({f.start(b, 0, 1, within(2s))});
        }
        SUBCASE("running")
        {
            const auto b = f.make();
            held_lane held(f);
            CHECK(f.outcome(f.start(b, 0, 1, within(1ms))) == errc::deadline_exceeded);
            held.open();
        }
        SUBCASE("passed")
        {
            const auto b = f.make();
            CHECK(f.outcome(f.start(b, 0, 1, within(-1ms))) == errc::deadline_exceeded);
        }
    }

    TEST_CASE("a full queue refuses requests that do not want to wait")
    {
        batcher_fixture f(one_lane());
        const auto b = f.make({.max_in_flight = 1, .max_queued = {1, 2, 1}, .max_waiting = 1});
        held_lane held(f);
        const auto running = f.start(b);
        test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
        const exec_options impatient{.when_full = when_full::fail};
        auto all = test::row_runs{running, f.start(b, 1, 1, impatient), f.start(b, 2, 1, impatient)};
        CHECK(f.outcome(f.start(b, 3, 1, impatient)) == errc::queue_full);
        all.push_back(f.start(b, 4));
        CHECK(f.outcome(f.start(b, 5)) == errc::queue_full);
        all.push_back(f.start(b, 6, 1, {.priority = priority::high, .when_full = when_full::fail}));
        CHECK(b.stats().refused == 2);
        held.open();
        f.check_right(all);
    }

    TEST_CASE("wrong arguments are refused with a message that names them")
    {
        batcher_fixture f;
        const auto b = f.make({.name = "classify"});
        std::vector<float> x(4);
        std::vector<float> y(4);
        std::vector<int> wrong(4);
        std::vector<float> odd(5);
        std::vector<float> two(8);
        const auto refused = [&](auto operation, errc what, const std::string& text) {
            const auto r = test::await(f.io, std::move(operation));
            REQUIRE_FALSE(r);
            CHECK(r.error() == what);
            CHECK(r.error().message() == text);
        };
        refused(b.async_run(from(x)), errc::invalid_argument, "classify: output y is missing");
        refused(b.async_run(to(y)), errc::invalid_argument, "classify: input x is missing");
        refused(b.async_run(from(x), from(x), to(y)), errc::invalid_argument,
                "classify: inputs: the model has 1, given more");
        refused(b.async_run(from(wrong), to(y)), errc::wrong_dtype,
                "classify: input x has elements of type f32, given i32");
        refused(b.async_run(from(odd), to(y)), errc::length_mismatch,
                "classify: input x has 4 elements in each row, given 5");
        refused(b.async_run(from(std::vector<float>()), to(y)), errc::length_mismatch,
                "classify: input x has 4 elements in each row, given 0");
        refused(b.async_run(from(x), to(two)), errc::length_mismatch,
                "classify: output y has 2 rows, the arguments before it 1");
        std::vector<float> many(20);
        refused(b.async_run(from(many), to(many)), errc::length_mismatch,
                "classify: the request has 5 rows; a batch has at most 4");
        const auto none = test::await_elsewhere(dynamic_batcher().async_run(from(x), to(y)));
        REQUIRE_FALSE(none);
        CHECK(none.error() == errc::invalid_argument);
        CHECK(none.error().message() == "batcher: it is empty: default-constructed or moved from");
        CHECK(b.stats().refused == 8);
    }

    TEST_CASE("bad options, devices and models are refused when a batcher is created")
    {
        batcher_fixture f;
        const auto error_of = [&](std::vector<device> devices, std::vector<serve::batch_model> models,
                                  const batcher_options& o) {
            const auto r = test::await(
                f.io, dynamic_batcher::async_create(f.io.get_executor(), std::move(devices), std::move(models), o));
            REQUIRE_FALSE(r);
            return r.error();
        };
        const std::vector good{test::plus_one_model()};
        CHECK(error_of({}, good, {}).message() == "batcher: no device is given");
        CHECK(error_of({f.gpu}, {}, {}).message() == "batcher: no model is given");
        CHECK(error_of({f.gpu, device()}, good, {}).message() == "batcher: a device is empty");
        CHECK(error_of({f.gpu}, {serve::batch_model()}, {}).message() == "batcher: a model is empty");
        CHECK(error_of({f.gpu}, good, {.max_rows = 5}).message() ==
              "batcher: max_rows is 5; the largest plan has 4 rows");
        CHECK(error_of({f.gpu}, {test::plus_one_model({4}), test::plus_one_model({8}, 5)}, {}).message() ==
              "batcher: the largest plan of a model has 8 rows, that of another 4");
        for (const auto& [o, text] : std::initializer_list<std::pair<batcher_options, const char*>>{
                 {{.max_delay = -1ns}, "max_delay is -1 ns; it must not be negative"},
                 {{.max_padding = 1.5}, "max_padding is 1.5; it must be from 0 to 1"},
                 {{.max_in_flight = 0}, "max_in_flight is 0; it must be from 1 to 64"},
                 {{.max_queued = {1, 0, 1}}, "max_queued is 0; each must be at least 1"},
                 {{.preferred = {4, 0}}, "preferred is 0; each must be at least 1"},
             }) {
            const auto ec = error_of({f.gpu}, good, o);
            CHECK(ec == errc::invalid_option);
            CHECK(ec.message() == text);
        }
    }

    TEST_CASE("a batcher whose device has stopped cannot be created, and one that loses its device says so")
    {
        batcher_fixture f;
        const auto b = f.make();
        REQUIRE(test::await(f.io, f.gpu.async_shutdown(shutdown::drain)));
        const auto ec = f.outcome(f.start(b));
        CHECK(ec == errc::device_failed);
        CHECK(ec.message() == "batcher: none of its 1 devices works; the first one is stopped");
        const auto again = test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{f.gpu},
                                                                           std::vector{test::plus_one_model()}, {}));
        REQUIRE_FALSE(again);
        CHECK(again.error() == errc::device_stopped);
    }

    TEST_CASE("drain answers what was accepted, abandon does not, and later requests are refused")
    {
        for (const auto mode : {shutdown::drain, shutdown::abandon}) {
            CAPTURE(int(mode));
            batcher_fixture f(one_lane());
            const auto b = f.make({.max_in_flight = 1});
            std::optional<held_lane> held(f);
            const auto all = f.start_many(b, 6);
            test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
            bool stopped = false;
            b.async_shutdown(mode, [&](error_code ec) { stopped = !ec; });
            const auto late = f.start(b);
            CHECK(f.outcome(late) == errc::actor_stopped);
            CHECK_FALSE(stopped);
            if (mode == shutdown::abandon)
                for (const auto& r : all)
                    CHECK(f.outcome(r) == errc::actor_stopped);
            held.reset();
            test::run_until(f.io, [&] { return stopped; });
            if (mode == shutdown::drain)
                f.check_right(all);
            REQUIRE(test::await(f.io, b.async_shutdown(shutdown::drain)));
        }
    }

    TEST_CASE("a dropped batcher finishes its requests, and then lets its device go")
    {
        batcher_fixture f;
        auto b = f.make();
        const auto all = f.start_many(b, 9);
        b = {};
        f.check_right(all);
        test::run_until(f.io, [&] { return test::await(f.io, f.gpu.async_stats()).value().live_buffers == 0; });
    }

    TEST_CASE("an execution context that is destroyed takes waiting requests with it")
    {
        auto alive = std::make_shared<int>();
        std::vector<float> x(4);
        std::vector<float> y(4);
        dynamic_batcher kept;
        device gpu;
        {
            asio::io_context io;
            gpu = test::make_device(io);
            kept = test::await(io, dynamic_batcher::async_create(io.get_executor(), std::vector{gpu},
                                                                 std::vector{test::plus_one_model()},
                                                                 {.max_delay = 1h, .delay = serve::delay_rule::fixed}))
                       .value();
            kept.async_run(from(x), to(y), [alive](error_code) { FAIL("not called"); });
            test::run_until(io, [&] { return kept.stats().queued[1] == 1; });
            CHECK(alive.use_count() == 2);
        }
        CHECK(alive.use_count() == 1);
        kept.async_run(from(x), to(y), [alive](error_code) { FAIL("not called"); });
        CHECK(alive.use_count() == 1);
    }

    TEST_CASE("two devices share the work, and one that has stopped gets none")
    {
        batcher_fixture f;
        const auto other = test::make_device(f.io);
        auto made =
            test::await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::vector{f.gpu, other},
                                                            std::vector{test::plus_one_model()}, {.max_in_flight = 1}));
        REQUIRE(made);
        const auto b = made.value();
        f.check_right(f.start_many(b, 40));
        const auto runs_of = [&](const device& d) { return test::await(f.io, d.async_stats()).value().completed; };
        CHECK(runs_of(f.gpu) > 0);
        CHECK(runs_of(other) > 0);
        REQUIRE(test::await(f.io, other.async_shutdown(shutdown::drain)));
        f.check_right(f.start_many(b, 20));
    }
}

} // namespace test_serve_dynamic_batcher_ends
