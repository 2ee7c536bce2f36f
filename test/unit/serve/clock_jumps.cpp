#include "device/timer_rule.hpp"
#include "former_fixture.hpp"
#include "serve/later.hpp"

#include <coaccel/actor/restart_budget.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

// What the state machines of a batcher decide when the time points that they get jump far ahead, stand still, or go a
// little backwards.
namespace test_serve_clock_jumps {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;
using test::requests;
using clock = test::former_clock;
using fixture = test::former_fixture;

constexpr auto start = test::former_start;
constexpr auto end_of_time = clock::time_point::max();
constexpr auto years = 24h * 365;

batch_rules rules(serve::delay_rule delay)
{
    auto r = test::former_rules();
    r.delay = delay;
    r.max_queued = {64, 64, 64};
    return r;
}

/// How far the clock of the simulation may go back in one step.
constexpr auto most_back = 10us;

/// Requests come, start, end and expire while the clock does what it wants.
struct simulation {
    simulation(unsigned seed, serve::delay_rule delay) : random(seed), fixture_(rules(delay)) {}

    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); }

    void move_clock()
    {
        auto& now = fixture_.now;
        switch (below(8)) {
        case 0: now -= std::chrono::nanoseconds(below(static_cast<int>(most_back / 1ns))); break;
        case 1: now += 1h * below(100); break;
        case 2: now += years * below(3); break;
        case 3:
        case 4: break;
        default: now += std::chrono::microseconds(below(200)); break;
        }
    }

    void add()
    {
        exec_options how;
        how.priority = static_cast<priority>(below(3));
        switch (below(4)) {
        case 0: how.deadline = later(fixture_.now, std::chrono::microseconds(below(1000))); break;
        case 1: how.deadline = end_of_time - std::chrono::nanoseconds(below(1000)); break;
        default: break;
        }
        if (!fixture_.add(static_cast<std::uint64_t>(below(2)), 1 + static_cast<std::uint32_t>(below(4)), how).refused)
            ++waiting;
    }

    /// What a turn of the batcher does.
    void turn()
    {
        auto& f = fixture_;
        while (f.former.expired(f.now))
            --waiting;
        for (requests batch = f.next(); !batch.empty(); batch = f.next())
            waiting -= static_cast<int>(batch.size());
        REQUIRE(f.former.queued() == static_cast<std::uint64_t>(waiting));
        const auto wake = f.former.wake_at(f.now);
        REQUIRE(wake > f.now);
        if (waiting == 0 || f.former.running() == test::former_rules().max_in_flight)
            return;
        // Nothing else would end the wait, so it has an end, which is near: no longer than the delay, and than the
        // clock has gone back since the request arrived.
        REQUIRE(wake - f.now <= test::former_rules().max_delay + went_back);
    }

    void step()
    {
        const auto before = fixture_.now;
        move_clock();
        went_back = fixture_.now < before ? went_back + (before - fixture_.now) : went_back;
        if (below(2) == 0)
            add();
        if (fixture_.former.running() > 0 && below(3) == 0) {
            fixture_.former.ended();
            // Measured with the same clock.
            fixture_.former.measured(static_cast<std::uint64_t>(below(2)), 4, fixture_.now - before);
        }
        turn();
    }

    /// Every request leaves, although the clock only does what the former waits for.
    void finish()
    {
        auto& f = fixture_;
        for (int turns = 0; waiting > 0; ++turns) {
            REQUIRE(turns < 1000);
            if (f.former.running() > 0)
                f.former.ended();
            else
                f.now = f.former.wake_at(f.now);
            turn();
        }
    }

    std::mt19937 random;
    fixture fixture_;
    int waiting = 0;
    std::chrono::nanoseconds went_back{0};
};

TEST_SUITE("clock jumps")
{
    TEST_CASE("sums and differences of time points stay in range")
    {
        CHECK(later(start, 1h) == start + 1h);
        CHECK(later(end_of_time, 1ns) == end_of_time);
        CHECK(later(end_of_time - 1h, 1h) == end_of_time);
        CHECK(later(start, std::chrono::nanoseconds::max()) == end_of_time);
        CHECK(later(clock::time_point::min(), std::chrono::nanoseconds::max()) == clock::time_point(-1ns));
        CHECK(time_between(start, start + 5ms) == 5ms);
        CHECK(time_between(start, start) == 0ns);
        CHECK(time_between(start + 5ms, start) == 0ns);
        CHECK(time_between(end_of_time, clock::time_point::min()) == 0ns);
        CHECK(time_between(clock::time_point(-5ms), clock::time_point(5ms)) == 10ms);
        CHECK(time_between(clock::time_point::min(), end_of_time) == std::chrono::nanoseconds::max());
        CHECK(time_between(clock::time_point(-1ns), end_of_time) == std::chrono::nanoseconds::max());
        CHECK(time_between(clock::time_point(), end_of_time) == std::chrono::nanoseconds::max());
    }

    TEST_CASE("a clock that stands still delays a batch, and does not lose it")
    {
        fixture f(rules(serve::delay_rule::fixed));
        auto& a = f.add();
        for (int i = 0; i < 100; ++i) {
            CHECK(f.next().empty());
            CHECK(f.former.wake_at(f.now) == start + 100us);
        }
        f.now += 100us;
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("after a jump all that is due starts, and all that has expired ends")
    {
        fixture f(rules(serve::delay_rule::fixed));
        auto& late = f.add(0, 1, {.deadline = start + 50us});
        auto& a = f.add(1);
        auto& b = f.add(2, 1, {.deadline = end_of_time - 1ns});
        f.now = end_of_time - 10ns;
        CHECK(f.former.expired(f.now) == &late);
        CHECK(f.former.expired(f.now) == nullptr);
        CHECK(f.next() == requests{&a});
        CHECK(f.next() == requests{&b});
        CHECK(f.former.wake_at(f.now) == end_of_time);
        // The sum of arrival and delay is out of range; it is full, so it starts.
        f.former.ended();
        auto& c = f.add(3, 4);
        CHECK(f.next() == requests{&c});
    }

    TEST_CASE("a request that arrived when the clock was ahead waits longer by that time only")
    {
        fixture f(rules(serve::delay_rule::fixed));
        auto& a = f.add();
        f.now -= 5us;
        CHECK(f.next().empty());
        CHECK(f.former.wake_at(f.now) == start + 100us);
        auto& b = f.add();
        CHECK(b.sequence > a.sequence);
        f.now = start + 100us;
        CHECK(f.next() == requests{&a, &b});
    }

    TEST_CASE("a deadline is never started late because of the estimate of a jump")
    {
        fixture f(rules(serve::delay_rule::fixed));
        f.former.measured(0, 1, clock::duration::max());
        f.former.measured(0, 1, -1ns);
        f.former.measured(0, 1, clock::duration::min());
        auto& a = f.add(0, 1, {.deadline = start + 50us});
        REQUIRE(!a.refused);
        // The estimate leaves no time to wait.
        CHECK(f.next() == requests{&a});
        // With a batch that runs, such a request is refused, and not with a time that is out of range.
        const auto& b = f.add(0, 1, {.deadline = start + 50us});
        CHECK(b.refused == errc::deadline_exceeded);
        CHECK(b.refused.message().find("-") == std::string::npos);
    }

    TEST_CASE("estimates are never negative, and recover from a jump")
    {
        run_estimates e;
        e.add(0, 1, -5ms);
        CHECK(e.of(0, 1) == 0ns);
        e.add(1, 1, clock::duration::max());
        CHECK(e.of(1, 1) == 24h);
        for (int i = 0; i < 400; ++i)
            e.add(1, 1, 1ms);
        CHECK(e.of(1, 1) < 2ms);
        e.add(1, 1, clock::duration::min());
        CHECK(e.of(1, 1) > 0ns);
        e.add(1, 1, clock::duration::max());
        CHECK(e.of(1, 1) < 4ms);
    }

    TEST_CASE("a restart is not delayed beyond the range of the clock")
    {
        restart_budget budget({.max_restarts = 3, .window = 1min, .initial_backoff = 1s, .max_backoff = 10s});
        const error_code why = errc::user_exception;
        CHECK(budget.on_failure(start, why, 0.5).directive == directive::restart);
        // A little backwards: the earlier failure still counts.
        CHECK(budget.on_failure(start - 1us, why, 0.5).directive == directive::restart);
        CHECK(budget.left(start - 1us) == 1);
        // Far ahead: none counts.
        CHECK(budget.left(start + years) == 3);
        const auto last = budget.on_failure(end_of_time - 1ns, why, 0.5);
        CHECK(last.directive == directive::restart);
        CHECK(last.delay > 0ns);
        CHECK(budget.left(end_of_time) == 2);
    }

    TEST_CASE("a timer that expires before its time by the clock of the turn is set again")
    {
        using action = timer_rule::action;
        timer_rule rule;
        CHECK(rule.wait_until(start + 1ms, start) == action::set);
        CHECK(rule.wait_until(start + 1ms, start) == action::none);
        rule.expired();
        CHECK(rule.wait_until(start + 1ms, start + 1ms - 1ns) == action::set);
        rule.expired();
        CHECK(rule.wait_until(end_of_time, start + 2ms) == action::none);
        CHECK(rule.wait_until(start + 3ms, start + 2ms) == action::set);
    }

    TEST_CASE("whatever the clock does, no request waits for ever, and no wait is negative")
    {
        for (const auto delay : {serve::delay_rule::adaptive, serve::delay_rule::fixed})
            for (unsigned seed = 0; seed < 200; ++seed) {
                CAPTURE(seed);
                simulation s(seed, delay);
                for (int i = 0; i < 100; ++i)
                    s.step();
                s.finish();
            }
    }
}

} // namespace test_serve_clock_jumps
