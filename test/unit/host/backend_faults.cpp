#include "support.hpp"
#include "support/start_op.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace test_host_backend_faults {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using host_backend = coaccel::host::backend;
using test::after;
using test::both_modes;
using test::host_with;
using test::journal;
using test::task;

} // namespace

TEST_SUITE_BEGIN("host backend faults");

TEST_CASE("a poisoned op and the ops after it do not run, and the ops before it do")
{
    for (const auto mode : both_modes) {
        CAPTURE(mode);
        host_faults plan;
        plan.poison_at = 3;
        journal notes;
        std::vector<std::unique_ptr<task>> tasks;
        test::told second, third, fifth;
        host_backend b(host_with(mode, plan));
        auto s = b.make_stream(priority::normal).value();
        std::vector<host_backend::event> ends;
        for (int i = 1; i <= 5; ++i) {
            tasks.push_back(notes.make(i));
            (void)test::start(b, s, tasks.back()->op());
            ends.push_back(after(b, s));
        }
        CHECK(b.notify(ends[1], second.call()) == error_code());
        CHECK(b.notify(ends[2], third.call()) == error_code());
        CHECK(b.notify(ends[4], fifth.call()) == error_code());
        test::wait_for_death(b);
        CHECK(notes.order == std::vector<int>{1, 2});
        CHECK(second.count() == 1);
        CHECK(third.count() == 0);
        // Even events that had passed now report the loss.
        for (auto& e : ends) {
            CHECK(b.query(e).error() == errc::context_lost);
            CHECK(b.synchronize(e) == errc::context_lost);
        }
        CHECK(test::start(b, s, tasks[0]->op()) == errc::context_lost);
        CHECK(b.allocate(s, 8).error() == errc::context_lost);
        CHECK(b.status() == errc::context_lost);
        CHECK(fifth.count() == 0);
        CHECK(notes.order.size() == 2);
    }
}

TEST_CASE("a fault stops the streams that wait for its stream")
{
    fault_injector injector;
    journal notes;
    auto bad = notes.make(1), behind = notes.make(2);
    test::told told;
    test::gate gate;
    task blocker([&] { gate.pass(); });
    host_backend b(host_with(host_mode::pool, injector));
    auto s = b.make_stream(priority::normal).value();
    auto other = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, blocker.op()) == error_code());
    gate.wait_for(1);
    injector.poison();
    CHECK(test::start(b, s, bad->op()) == error_code());
    auto e = after(b, s);
    CHECK(b.wait(other, e) == error_code());
    CHECK(test::start(b, other, behind->op()) == error_code());
    auto end = after(b, other);
    CHECK(b.notify(end, told.call()) == error_code());
    gate.open();
    test::wait_for_death(b);
    CHECK(notes.order.empty());
    CHECK(told.count() == 0);
}

TEST_CASE("a hung op does not end until its context is condemned, and never runs")
{
    host_faults plan;
    plan.hang_at = 1;
    journal notes;
    auto hung = notes.make(1), behind = notes.make(2), elsewhere = notes.make(3);
    test::told told;
    host_backend b(host_with(host_mode::pool, plan));
    auto s = b.make_stream(priority::normal).value();
    auto other = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, hung->op()) == error_code());
    auto e = after(b, s);
    CHECK(test::start(b, s, behind->op()) == error_code());
    CHECK(b.notify(e, told.call()) == error_code());
    CHECK(b.query(e).value() == progress::pending);
    CHECK(b.status() == error_code());
    std::thread waiter([&] { CHECK(b.synchronize(e) == errc::context_lost); });
    b.abort();
    waiter.join();
    test::wait_for_death(b);
    CHECK(b.query(e).error() == errc::context_lost);
    CHECK(notes.order.empty());
    CHECK(told.count() == 0);
    CHECK(test::start(b, other, elsewhere->op()) == errc::context_lost);
}

TEST_CASE("in inline mode an injected hang ends the context instead of blocking the caller")
{
    fault_injector injector;
    journal notes;
    auto t = notes.make(1);
    host_backend b(host_with(host_mode::inline_, injector));
    auto s = b.make_stream(priority::normal).value();
    injector.hang();
    CHECK(test::start(b, s, t->op()) == error_code());
    CHECK(b.status() == errc::context_lost);
    CHECK(notes.order.empty());
    CHECK(injector.played() == 1);
}

TEST_CASE("status reports the loss only after running ops have left the callers' memory")
{
    test::gate gate;
    std::atomic<bool> left{false};
    task t([&] {
        gate.pass();
        left = true;
    });
    test::told told;
    host_backend b(host_with(host_mode::pool));
    auto s = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, t.op()) == error_code());
    auto e = after(b, s);
    CHECK(b.notify(e, told.call()) == error_code());
    gate.wait_for(1);
    b.abort();
    CHECK(b.status() == error_code());
    CHECK(b.query(e).error() == errc::context_lost);
    CHECK(b.synchronize(e) == errc::context_lost);
    CHECK(test::start(b, s, t.op()) == errc::context_lost);
    CHECK(b.status() == error_code());
    gate.open();
    test::wait_for_death(b);
    CHECK(left);
    CHECK(told.count() == 0);
    b.abort();
    CHECK(b.status() == errc::context_lost);
}

TEST_CASE("the injected delay applies to each op, and an abort cuts it short")
{
    host_faults plan;
    plan.delay = 5ms;
    task t([] {});
    {
        host_backend b(host_with(host_mode::pool, plan));
        auto s = b.make_stream(priority::normal).value();
        const auto start = std::chrono::steady_clock::now();
        CHECK(test::start(b, s, t.op()) == error_code());
        CHECK(test::start(b, s, t.op()) == error_code());
        auto e = after(b, s);
        CHECK(b.synchronize(e) == error_code());
        CHECK(std::chrono::steady_clock::now() - start >= 10ms);
    }
    plan.delay = 1h;
    host_backend b(host_with(host_mode::pool, plan));
    auto s = b.make_stream(priority::normal).value();
    CHECK(test::start(b, s, t.op()) == error_code());
    b.abort();
    test::wait_for_death(b);
}

TEST_CASE("the destruction of a backend waits for running ops and drops the rest")
{
    std::atomic<int> runs{0};
    test::gate gate;
    task running([&] {
        gate.pass();
        ++runs;
    });
    task dropped([&] { runs += 100; });
    auto b = std::make_unique<host_backend>(host_with(host_mode::pool, 1));
    auto s = b->make_stream(priority::normal).value();
    CHECK(test::start(*b, s, running.op()) == error_code());
    CHECK(test::start(*b, s, dropped.op()) == error_code());
    gate.wait_for(1);
    // The op can continue only after the abort, while the backend is being destroyed or shortly before.
    b->abort();
    std::thread opener([&] { gate.open(); });
    b.reset();
    opener.join();
    CHECK(runs == 1);
}

TEST_CASE("create refuses bad options, and fails as often as the injector demands")
{
    auto bad = host_with(host_mode::pool, -1);
    CHECK(host_backend::create(bad).error() == errc::invalid_option);
    host_faults plan;
    plan.refuse_starts = 2;
    fault_injector injector(plan);
    for (const auto mode : both_modes) {
        CHECK(host_backend::create(host_with(mode, injector)).error() == errc::start_failed);
        CHECK(host_backend::create(host_with(mode, injector)).error() == errc::start_failed);
        auto made = host_backend::create(host_with(mode, injector));
        REQUIRE(made);
        CHECK(made.value()->status() == error_code());
        injector.refuse_starts(2);
    }
}

TEST_SUITE_END();

} // namespace test_host_backend_faults
