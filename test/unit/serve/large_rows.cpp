#include "large_rows_fixture.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace test_serve_large_rows {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::dynamic_batcher;
using test::copied;
using test::held_copies;
using test::large_fixture;
using test::row_runs;

constexpr std::size_t elements = test::large_row;

TEST_SUITE("large rows")
{
    TEST_CASE("their batches are copied on other threads, and have the right outputs")
    {
        large_fixture f;
        const auto b = f.make_large();
        row_runs all;
        for (int i = 0; i < 40; ++i)
            all.push_back(f.start_large(b, static_cast<float>(i), 1 + i % 2));
        f.check_right(all);
        CHECK(b.stats().completed == 40);
    }

    TEST_CASE("the executor is free while a copy waits")
    {
        for (const auto what : {copied::inputs, copied::outputs}) {
            CAPTURE(int(what));
            large_fixture f;
            const auto b = f.make_large();
            const auto small = f.make();
            std::optional<held_copies> held;
            const auto all = f.start_waiting(b, what, held);
            f.check_right(f.start_many(small, 9));
            CHECK_FALSE(all[0]->ended());
            held.reset();
            f.check_right(all);
        }
    }

    TEST_CASE("requests keep their order of arrival")
    {
        large_fixture f;
        const auto b = f.make_large({.order = serve::completion_order::arrival});
        row_runs all;
        for (int i = 0; i < 12; ++i)
            all.push_back(f.start_large(b, static_cast<float>(i), 1 + i % 2));
        f.check_right(all);
        for (std::size_t i = 0; i < all.size(); ++i)
            CHECK(all[i]->place == static_cast<int>(i));
    }

    TEST_CASE("a request that is cancelled while its copy waits is answered at once, and its memory is not used")
    {
        for (const auto what : {copied::inputs, copied::outputs})
            for (const std::size_t i : {0u, 1u}) {
                CAPTURE(int(what));
                CAPTURE(i);
                large_fixture f;
                const auto b = f.make_large();
                std::optional<held_copies> held;
                const auto all = f.start_waiting(b, what, held);
                all[1 - i]->signal.emit(asio::cancellation_type::total);
                all[i]->signal.emit(asio::cancellation_type::terminal);
                CHECK(f.outcome(all[i]) == asio::error::operation_aborted);
                all[i]->x.clear();
                all[i]->x.shrink_to_fit();
                test::run_turns(f.io);
                CHECK_FALSE(all[1 - i]->ended());
                held.reset();
                f.check_right({all[1 - i]});
                CHECK(all[i]->y == std::vector<float>(elements, -1));
                CHECK(b.stats().cancelled == 1);
            }
    }

    TEST_CASE("a batch whose members have all given up does not run, and its place is free at once")
    {
        large_fixture f;
        const auto b = f.make_large({.max_in_flight = 1});
        std::optional<held_copies> held;
        for (const auto& r : f.start_waiting(b, copied::inputs, held))
            r->signal.emit(asio::cancellation_type::terminal);
        test::run_until(f.io, [&] { return b.stats().in_flight == 0; });
        CHECK(b.stats().cancelled == 2);
        CHECK(b.stats().batches == 1);
        CHECK(b.stats().form_time.count == 0);
        CHECK(b.stats().run_time.count == 0);
        // The place is used again before the thread reaches the first copy.
        const row_runs next{f.start_large(b, 3), f.start_large(b, 4)};
        test::run_until(f.io, [&] { return b.stats().in_flight == 1; });
        held.reset();
        f.check_right(next);
        CHECK(b.stats().run_time.count == 1);
    }

    TEST_CASE("a batch whose members have all given up while its outputs waited has run")
    {
        large_fixture f;
        const auto b = f.make_large({.max_in_flight = 1});
        std::optional<held_copies> held;
        const auto all = f.start_waiting(b, copied::outputs, held);
        for (const auto& r : all)
            r->signal.emit(asio::cancellation_type::terminal);
        test::run_until(f.io, [&] { return b.stats().in_flight == 0; });
        held.reset();
        f.check_right({f.start_large(b, 3), f.start_large(b, 4)});
        CHECK(b.stats().run_time.count == 2);
        for (const auto& r : all)
            CHECK(r->y == std::vector<float>(elements, -1));
    }

    TEST_CASE("a request that is cancelled while its copy runs is answered when its memory is no longer used")
    {
        for (const auto what : {copied::inputs, copied::outputs}) {
            CAPTURE(int(what));
            large_fixture f;
            const auto b = f.make_large();
            large_fixture::running_copy run(f, b, what);
            run.signal.emit(asio::cancellation_type::terminal);
            run.signal.emit(asio::cancellation_type::terminal);
            test::run_turns(f.io);
            CHECK(run.completions == 0);
            CHECK_FALSE(run.second->ended());
            run.held.open();
            CHECK(run.outcome() == asio::error::operation_aborted);
            f.check_right({run.second});
            CHECK(b.stats().cancelled == 1);
        }
    }

    TEST_CASE("a batch whose members have all given up while their inputs were copied does not run")
    {
        large_fixture f;
        const auto b = f.make_large();
        large_fixture::running_copy run(f, b, copied::inputs);
        run.signal.emit(asio::cancellation_type::terminal);
        run.second->signal.emit(asio::cancellation_type::terminal);
        test::run_turns(f.io);
        CHECK(b.stats().cancelled == 0);
        run.held.open();
        CHECK(run.outcome() == asio::error::operation_aborted);
        CHECK(f.outcome(run.second) == asio::error::operation_aborted);
        test::run_until(f.io, [&] { return b.stats().in_flight == 0; });
        CHECK(b.stats().run_time.count == 0);
        f.check_right({f.start_large(b, 3), f.start_large(b, 4)});
    }

    TEST_CASE("a deadline that passes while a copy waits ends the wait at once")
    {
        for (const auto what : {copied::inputs, copied::outputs}) {
            CAPTURE(int(what));
            large_fixture f;
            const auto b = f.make_large();
            std::optional<held_copies> held;
            const auto all = f.start_waiting(b, what, held, within(3s));
            CHECK(f.outcome(all[0]) == errc::deadline_exceeded);
            CHECK_FALSE(all[1]->ended());
            held.reset();
            f.check_right({all[1]});
            CHECK(b.stats().expired == 1);
        }
    }

    TEST_CASE("a deadline that passes while a copy runs ends the wait after it")
    {
        for (const auto what : {copied::inputs, copied::outputs}) {
            CAPTURE(int(what));
            large_fixture f;
            const auto b = f.make_large();
            const auto how = within(3s);
            large_fixture::running_copy run(f, b, what, how);
            std::this_thread::sleep_until(how.deadline);
            test::run_turns(f.io);
            CHECK(run.completions == 0);
            run.held.open();
            CHECK(run.outcome() == errc::deadline_exceeded);
            f.check_right({run.second});
        }
    }

    TEST_CASE("shutdown waits for the copies that it needs")
    {
        for (const auto what : {copied::inputs, copied::outputs})
            for (const auto mode : {shutdown::drain, shutdown::abandon}) {
                CAPTURE(int(what));
                CAPTURE(int(mode));
                large_fixture f;
                const auto b = f.make_large();
                std::optional<held_copies> held;
                const auto all = f.start_waiting(b, what, held);
                bool stopped = false;
                b.async_shutdown(mode, [&](error_code ec) { stopped = !ec; });
                if (mode == shutdown::abandon) {
                    test::run_until(f.io, [&] { return stopped; });
                    for (const auto& r : all)
                        CHECK(f.outcome(r) == errc::actor_stopped);
                    continue;
                }
                test::run_turns(f.io);
                CHECK_FALSE(stopped);
                CHECK_FALSE(all[0]->ended());
                held.reset();
                test::run_until(f.io, [&] { return stopped; });
                f.check_right(all);
            }
    }

    TEST_CASE("shutdown::abandon waits for a copy that runs")
    {
        for (const auto what : {copied::inputs, copied::outputs}) {
            CAPTURE(int(what));
            large_fixture f;
            const auto b = f.make_large();
            large_fixture::running_copy run(f, b, what);
            bool stopped = false;
            b.async_shutdown(shutdown::abandon, [&](error_code ec) { stopped = !ec; });
            test::run_turns(f.io);
            CHECK_FALSE(stopped);
            CHECK(run.completions == 0);
            CHECK_FALSE(run.second->ended());
            run.held.open();
            test::run_until(f.io, [&] { return stopped; });
            CHECK(run.outcome() == errc::actor_stopped);
            CHECK(f.outcome(run.second) == errc::actor_stopped);
        }
    }

    TEST_CASE("an execution context can be destroyed while a copy waits")
    {
        test::gate gate;
        // Part of the handler: the threads are let go when the request is destroyed, while its copy waits.
        struct opens_gate {
            test::gate* where;
            ~opens_gate() { where->open(); }
        };
        bool waited = false;
        {
            asio::io_context io;
            // Services end in the opposite order, so the pool ends after the batcher.
            auto& pool = asio::use_service<detail::blocking_pool>(io);
            const auto gpu = test::make_device(io);
            const auto b =
                test::await(io, dynamic_batcher::async_create(io.get_executor(), std::vector{gpu},
                                                              std::vector{test::plus_one_model({2}, elements)}, {}))
                    .value();
            for (int i = 0; i < held_copies::threads; ++i)
                REQUIRE(pool.run(detail::blocking_pool::kind::copying, [gate]() mutable { gate.pass(); }));
            gate.wait_for(held_copies::threads);
            auto x = std::make_shared<std::vector<float>>(2 * elements);
            auto y = std::make_shared<std::vector<float>>(2 * elements);
            b.async_run(from(*x), to(*y), [x, y, o = std::unique_ptr<opens_gate>(new opens_gate{&gate})](error_code) {
                FAIL("not called");
            });
            x.reset();
            y.reset();
            test::run_until(io, [&] { return b.stats().in_flight == 1; });
            test::run_turns(io);
            waited = !gate.is_open();
        }
        CHECK(waited);
        CHECK(gate.is_open());
    }

    // The memory of a request is freed by its handler, so that the sanitizers find a copy that goes on.
    TEST_CASE("memory is not used after the end of a request, however copies, cancellations and the end of the "
              "execution context meet")
    {
        struct own_memory {
            std::vector<float> x = std::vector<float>(2 * elements, 1);
            std::vector<float> y = std::vector<float>(2 * elements);
            asio::cancellation_signal signal;
        };
        for (int round = 0; round < 12; ++round) {
            auto io = std::make_unique<asio::io_context>(1);
            const auto gpu = test::make_device(*io);
            auto b = test::await(*io, dynamic_batcher::async_create(io->get_executor(), std::vector{gpu},
                                                                    std::vector{test::plus_one_model({2}, elements)},
                                                                    {.max_in_flight = 3}))
                         .value();
            std::vector<std::weak_ptr<own_memory>> all;
            int ended = 0;
            for (int i = 0; i < 6; ++i) {
                auto m = std::make_shared<own_memory>();
                all.push_back(m);
                auto slot = m->signal.slot();
                b.async_run(from(m->x), to(m->y), asio::bind_cancellation_slot(slot, [m, &ended](error_code ec) {
                                if (!ec)
                                    CHECK(m->y[0] == 2);
                                ++ended;
                            }));
            }
            test::run_until(*io, [&] { return b.stats().in_flight > 0 || ended > 0; });
            for (int turn = 0; turn < round; ++turn)
                io->poll_one();
            for (std::size_t i = 0; i < all.size(); i += 2)
                if (auto m = all[i].lock())
                    m->signal.emit(asio::cancellation_type::terminal);
            if (round % 3 == 0)
                b.async_shutdown(shutdown::abandon, [](error_code) {});
            if (round % 3 == 1)
                test::run_until(*io, [&] { return ended == 6; });
            io.reset();
            for (const auto& m : all)
                CHECK(m.expired());
        }
    }

    TEST_CASE("a batch whose context is lost runs again with the inputs that were copied")
    {
        fault_injector injector;
        auto o = test::device_fixture::on_host(test::device_fixture::with_mode(host_mode::pool));
        o.host.injector = &injector;
        large_fixture f(o);
        const auto b = f.make_large({.max_in_flight = 1});
        f.check_right({f.start_large(b, 1), f.start_large(b, 2)});
        injector.poison();
        f.check_right({f.start_large(b, 3), f.start_large(b, 4)});
        CHECK(injector.played() == 1);
    }
}

} // namespace test_serve_large_rows
