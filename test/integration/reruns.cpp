#include "poison_fixture.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_integration_reruns {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::poison;
using test::poison_fixture;
using test::poison_options;
using test::poison_runs;

device_options with_hang_timeout(std::chrono::nanoseconds time = 300ms)
{
    auto o = poison_options();
    o.context.hang_timeout = time;
    return o;
}

} // namespace

TEST_SUITE_BEGIN("isolated reruns");

TEST_CASE("a poisoned run costs exactly one error among many innocent ones")
{
    for (const int standby : {0, 1})
        for (const auto what : test::deadly) {
            CAPTURE(standby);
            CAPTURE(int(what));
            poison_fixture f(poison_options(standby));
            const plan p = f.load();
            auto innocent = f.start_many(p, 30);
            const auto poisoned = f.start(p, what);
            for (auto& r : f.start_many(p, 30))
                innocent.push_back(r);
            const auto ec = f.outcome(poisoned);
            CHECK(ec == errc::context_lost);
            CHECK_MESSAGE(ec.message().find("it ended the context while nothing else was on it") != std::string::npos,
                          ec.message());
            f.check_right(innocent);
            const auto s = f.stats();
            CHECK(s.convicted == 1);
            CHECK(s.failed == 1);
            CHECK(s.completed == 60);
            CHECK(s.restarts == 2);
            CHECK(s.reruns > 0);
            CHECK(s.quarantined_plans == 0);
        }
}

TEST_CASE("each of several poisoned runs gets its error")
{
    poison_fixture f;
    const plan p = f.load();
    poison_runs innocent;
    poison_runs poisoned;
    for (const auto what : test::deadly) {
        for (auto& r : f.start_many(p, 10))
            innocent.push_back(r);
        poisoned.push_back(f.start(p, what));
    }
    for (const auto& r : poisoned)
        CHECK(f.outcome(r) == errc::context_lost);
    f.check_right(innocent);
    CHECK(f.stats().convicted == 3);
    CHECK(f.stats().failed == 3);
}

TEST_CASE("a poisoned run that is the only one is convicted when it is repeated, and not before")
{
    auto o = poison_options();
    o.restart.max_restarts = 1;
    poison_fixture f(o);
    const plan p = f.load();
    // A conviction restores the budget, so that the device does not fail.
    for (std::uint64_t i = 1; i <= 4; ++i) {
        CHECK(f.outcome(f.start(p, poison::abort)) == errc::context_lost);
        f.check_right(f.start_many(p, 1));
        const auto s = f.stats();
        CHECK(s.convicted == i);
        CHECK(s.restarts == 2 * i);
    }
}

TEST_CASE("a worker that is killed from outside convicts no run")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        poison_fixture f(poison_options(standby));
        const plan p = f.load();
        f.send(SIGSTOP);
        const auto all = f.start_many(p, 40);
        f.kill();
        f.check_right(all);
        const auto s = f.stats();
        CHECK(s.convicted == 0);
        CHECK(s.failed == 0);
        CHECK(s.restarts == 1);
        CHECK(s.reruns > 0);
    }
}

TEST_CASE("a suspect whose workers are killed from outside is tried again, up to 8 times")
{
    poison_fixture f;
    const plan p = f.load();
    const auto slow = f.start(p, poison::slow, 60'000);
    f.wait_for_in_flight(1);
    for (std::uint64_t lost = 1; lost < 8; ++lost) {
        CAPTURE(lost);
        f.kill();
        f.wait_for_reruns(lost);
        CHECK_FALSE(slow->ended());
    }
    f.kill();
    CHECK(f.outcome(slow) == errc::context_lost);
    CHECK(f.stats().convicted == 0);
    f.check_right(f.start_many(p, 3));
}

TEST_CASE("a run that hangs is convicted by the time limit")
{
    poison_fixture f(with_hang_timeout());
    const plan p = f.load();
    auto innocent = f.start_many(p, 10);
    const auto hung = f.start(p, poison::hang);
    for (auto& r : f.start_many(p, 10))
        innocent.push_back(r);
    CHECK(f.outcome(hung) == errc::context_lost);
    f.check_right(innocent);
    CHECK(f.stats().convicted == 1);
    CHECK(f.stats().failed == 1);
}

TEST_CASE("a plan whose runs are not to be repeated gets context_lost")
{
    poison_fixture f;
    const plan never = f.load({.rerun = rerun_policy::never});
    const plan impure = f.load({}, false);
    const plan repeated = f.load();
    CHECK_FALSE(impure.description().repeatable());
    CHECK(repeated.description().repeatable());
    f.send(SIGSTOP);
    const auto a = f.start(never);
    const auto b = f.start(impure);
    const auto c = f.start(repeated);
    // Ordinary ops are never repeated unless they say so.
    const auto data = test::numbers(10);
    std::optional<error_code> uploaded;
    f.gpu.async_upload(data, [&](error_code ec, buffer<float>) { uploaded = ec; });
    f.wait_for_in_flight(4);
    f.kill();
    CHECK(f.outcome(a) == errc::context_lost);
    CHECK(f.outcome(b) == errc::context_lost);
    test::run_until(f.io, [&] { return uploaded.has_value(); });
    CHECK(*uploaded == errc::context_lost);
    f.check_right({c});
    CHECK(f.stats().failed == 3);
    CHECK(f.stats().convicted == 0);
    f.check_right(f.start_many(never, 2));
    f.check_right(f.start_many(impure, 2));
}

TEST_CASE("a plan whose runs are to be repeated once gets context_lost after the second loss")
{
    poison_fixture f;
    const plan once = f.load({.rerun = rerun_policy::once});
    SUBCASE("lost once")
    {
        f.send(SIGSTOP);
        const auto all = f.start_many(once, 3);
        f.wait_for_in_flight(3);
        f.kill();
        f.check_right(all);
    }
    SUBCASE("lost twice")
    {
        const auto slow = f.start(once, poison::slow, 60'000);
        f.wait_for_in_flight(1);
        f.kill();
        f.wait_for_reruns(1);
        CHECK_FALSE(slow->ended());
        f.kill();
        CHECK(f.outcome(slow) == errc::context_lost);
        CHECK(f.stats().convicted == 0);
    }
    f.check_right(f.start_many(once, 1));
}

TEST_CASE("a plan that always faults is quarantined until it is revived, and others go on")
{
    poison_fixture f;
    const plan bad = f.load({.poison_limit = 2});
    const plan good = f.load();
    for (int i = 0; i < 2; ++i) {
        CHECK(f.outcome(f.start(bad, poison::segv)) == errc::context_lost);
        CHECK_FALSE(bad.quarantined());
    }
    poison_runs innocent = f.start_many(good, 20);
    const auto last = f.start(bad, poison::segv);
    const auto waiting = f.start_many(bad, 40);
    CHECK(f.outcome(last) == errc::context_lost);
    CHECK(bad.quarantined());
    CHECK_FALSE(good.quarantined());
    CHECK(f.stats().quarantined_plans == 1);
    // Those that the device has not started before are refused.
    for (const auto& r : waiting) {
        const auto ec = f.outcome(r);
        CHECK((!ec || ec == errc::plan_quarantined));
    }
    const auto refused = f.outcome(f.start(bad));
    CHECK(refused == errc::plan_quarantined);
    CHECK_MESSAGE(refused.message().find("poisonable: more than 2 runs ended the context") != std::string::npos,
                  refused.message());
    f.check_right(innocent);
    f.check_right(f.start_many(good, 20));

    REQUIRE(test::await(f.io, bad.async_revive()));
    CHECK_FALSE(bad.quarantined());
    CHECK(f.stats().quarantined_plans == 0);
    f.check_right(f.start_many(bad, 5));
    // It counts from the beginning.
    CHECK(f.outcome(f.start(bad, poison::abort)) == errc::context_lost);
    CHECK_FALSE(bad.quarantined());
}

TEST_CASE("workers that are killed while plans load do not fail the load or the runs")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = poison_options(standby);
        o.restart.max_backoff = 1ms;
        poison_fixture f(o);
        const plan p = f.load();
        for (int i = 0; i < 12; ++i) {
            CAPTURE(i);
            const auto all = f.start_many(p, 8);
            std::optional<error_code> loaded;
            plan other;
            f.gpu.async_load(test::poisonable_plan(), {.instances = 8, .initial = 8}, [&](error_code ec, plan made) {
                loaded = ec;
                other = std::move(made);
            });
            f.io.restart();
            f.io.run_for(std::chrono::microseconds(i * 300));
            f.send(SIGKILL);
            test::run_until(f.io, [&] { return loaded.has_value(); });
            CHECK_MESSAGE(!*loaded, loaded->message());
            f.check_right(all);
            f.check_right(f.start_many(other, 8));
        }
        CHECK(f.stats().failed == 0);
        CHECK(f.stats().convicted == 0);
    }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("isolated overdue runs");

namespace {

/// A device with a standby that has the plan, and some runs that have told how long runs take.
struct overdue_fixture : poison_fixture {
    explicit overdue_fixture(std::chrono::nanoseconds hang_timeout)
        : poison_fixture(with_hang_timeout(hang_timeout)), p(load({.suspect_after = {.factor = 4, .at_least = 100ms}}))
    {
        for (int i = 0; i < 10; ++i)
            check_right(start_many(p, 1));
        wait_for_standby_plans(1);
    }

    plan p;
};

} // namespace

TEST_CASE("the rule needs a limit for runs that never end")
{
    poison_fixture f;
    const auto ec =
        test::await(f.io, f.gpu.async_load(test::poisonable_plan(), {.suspect_after = {.factor = 4}})).error();
    CHECK(ec == errc::invalid_option);
}

TEST_CASE("a run that hangs moves the device to its standby, where innocent runs succeed before the time limit")
{
    constexpr auto limit = 5s;
    overdue_fixture f(limit);
    const auto begin = std::chrono::steady_clock::now();
    const auto hung = f.start(f.p, poison::hang);
    const auto innocent = f.start_many(f.p, 20);
    f.check_right(innocent);
    for (const auto& r : innocent)
        CHECK(r->end - begin < limit);
    CHECK(f.gpu.status().generation == 2);
    // It runs last, alone, until the limit.
    CHECK_FALSE(hung->ended());
    CHECK(f.outcome(hung) == errc::context_lost);
    const auto s = f.stats();
    CHECK(s.convicted == 1);
    CHECK(s.failed == 1);
    CHECK(s.restarts == 2);
}

TEST_CASE("a false alarm costs a repetition and no error, and the next one needs twice the time")
{
    overdue_fixture f(60s);
    // Each false alarm doubles the limit, so that after a few of them this run is no longer overdue.
    std::uint64_t moves = 0;
    for (int i = 0; i < 6; ++i) {
        f.wait_for_standby_plans(1);
        const auto slow = f.start(f.p, poison::slow, 500);
        f.check_right(f.start_many(f.p, 5));
        f.check_right({slow});
        moves = f.stats().restarts;
    }
    CHECK(moves >= 1);
    CHECK(moves <= 3);
    const auto s = f.stats();
    CHECK(s.failed == 0);
    CHECK(s.convicted == 0);
    CHECK(s.reruns >= moves);
}

TEST_SUITE_END();

} // namespace test_integration_reruns
