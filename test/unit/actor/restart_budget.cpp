#include <coaccel/actor/restart_budget.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <limits>

namespace test_actor_restart_budget {

using namespace coaccel;
using namespace std::chrono_literals;

namespace {

const restart_budget::time_point epoch{};

directive by_kind(const error_code& ec) noexcept
{
    if (ec == errc::invalid_argument)
        return directive::resume;
    if (ec == errc::closed)
        return directive::stop;
    return ec == errc::device_lost ? directive::escalate : directive::restart;
}

restart_policy steady()
{
    restart_policy p;
    p.max_restarts = 3;
    p.window = 10s;
    p.initial_backoff = 100ms;
    p.max_backoff = 350ms;
    p.multiplier = 2.0;
    p.jitter = 0.0;
    return p;
}

} // namespace

TEST_SUITE_BEGIN("restart_policy");

TEST_CASE("the default policy is valid")
{
    CHECK_FALSE(restart_policy{}.validate());
}

TEST_CASE("each option out of range is refused")
{
    struct {
        const char* name;
        void (*spoil)(restart_policy&);
    } const cases[] = {
        {"no decider", [](restart_policy& p) { p.decider = nullptr; }},
        {"unknown strategy", [](restart_policy& p) { p.strategy = static_cast<strategy>(9); }},
        {"negative budget", [](restart_policy& p) { p.max_restarts = -1; }},
        {"empty window", [](restart_policy& p) { p.window = 0s; }},
        {"negative back-off", [](restart_policy& p) { p.initial_backoff = -1ms; }},
        {"maximum below initial", [](restart_policy& p) { p.max_backoff = p.initial_backoff - 1ns; }},
        {"shrinking back-off", [](restart_policy& p) { p.multiplier = 0.9; }},
        {"infinite multiplier", [](restart_policy& p) { p.multiplier = std::numeric_limits<double>::infinity(); }},
        {"multiplier not a number", [](restart_policy& p) { p.multiplier = std::numeric_limits<double>::quiet_NaN(); }},
        {"negative jitter", [](restart_policy& p) { p.jitter = -0.1; }},
        {"jitter above one", [](restart_policy& p) { p.jitter = 1.1; }},
        {"jitter not a number", [](restart_policy& p) { p.jitter = std::numeric_limits<double>::quiet_NaN(); }},
    };
    for (const auto& c : cases) {
        CAPTURE(c.name);
        restart_policy p;
        c.spoil(p);
        CHECK(p.validate() == errc::invalid_option);
    }
}

TEST_SUITE_END();
TEST_SUITE_BEGIN("restart_budget");

TEST_CASE("the decider chooses the directive, and only restarts wait or count")
{
    restart_policy p = steady();
    p.decider = &by_kind;
    restart_budget b(p);
    struct {
        errc error;
        directive expected;
    } const cases[] = {
        {errc::invalid_argument, directive::resume},
        {errc::closed, directive::stop},
        {errc::device_lost, directive::escalate},
    };
    for (const auto& c : cases) {
        const auto d = b.on_failure(epoch, c.error, 0.5);
        CHECK(d.directive == c.expected);
        CHECK(d.delay == 0s);
    }
    CHECK(b.left(epoch) == 3);
    CHECK(b.on_failure(epoch, errc::context_lost, 0.5).directive == directive::restart);
    CHECK(b.left(epoch) == 2);
}

TEST_CASE("delays grow up to the maximum, then the budget is spent")
{
    restart_budget b(steady());
    CHECK(b.on_failure(epoch, errc::context_lost, 0.0).delay == 100ms);
    CHECK(b.on_failure(epoch + 1s, errc::context_lost, 0.0).delay == 200ms);
    CHECK(b.on_failure(epoch + 2s, errc::context_lost, 0.0).delay == 350ms);
    CHECK(b.left(epoch + 3s) == 0);
    const auto d = b.on_failure(epoch + 3s, errc::context_lost, 0.0);
    CHECK(d.directive == directive::escalate);
    CHECK(d.delay == 0s);
}

TEST_CASE("a restart counts for one window from the moment it takes effect")
{
    restart_budget b(steady());
    for (int i = 0; i < 3; ++i)
        CHECK(b.on_failure(epoch, errc::context_lost, 0.0).directive == directive::restart);
    CHECK(b.on_failure(epoch + 10s + 99ms, errc::context_lost, 0.0).directive == directive::escalate);
    const auto d = b.on_failure(epoch + 10s + 100ms, errc::context_lost, 0.0);
    CHECK(d.directive == directive::restart);
    CHECK(d.delay == 350ms);
}

TEST_CASE("after a quiet window the back-off starts again")
{
    restart_budget b(steady());
    CHECK(b.on_failure(epoch, errc::context_lost, 0.0).delay == 100ms);
    CHECK(b.on_failure(epoch + 1s, errc::context_lost, 0.0).delay == 200ms);
    CHECK(b.on_failure(epoch + 30s, errc::context_lost, 0.0).delay == 100ms);
}

TEST_CASE("jitter spreads a delay in both directions but not beyond the maximum")
{
    restart_policy p = steady();
    p.jitter = 0.5;
    const auto first = [&](double random) {
        return restart_budget(p).on_failure(epoch, errc::context_lost, random).delay;
    };
    CHECK(first(0.0) == 50ms);
    CHECK(first(0.5) == 100ms);
    CHECK(first(0.75) == 125ms);
    p.max_backoff = 100ms;
    CHECK(first(0.75) == 100ms);
}

TEST_CASE("a budget of zero never restarts")
{
    restart_policy p = steady();
    p.max_restarts = 0;
    CHECK(restart_budget(p).on_failure(epoch, errc::context_lost, 0.0).directive == directive::escalate);
}

TEST_CASE("huge factors saturate at the maximum")
{
    restart_policy p = steady();
    p.max_restarts = 5000;
    p.multiplier = 1e6;
    restart_budget b(p);
    for (int i = 0; i < 2000; ++i) {
        const auto d = b.on_failure(epoch, errc::context_lost, 0.99);
        CHECK(d.delay <= 350ms);
        CHECK(d.delay > 0s);
    }
}

TEST_CASE("restarts that are forgiven do not count, and their delays are forgotten")
{
    restart_budget b(steady());
    CHECK(b.restart(epoch, 0.5).delay == 100ms);
    CHECK(b.restart(epoch, 0.5).delay == 200ms);
    CHECK(b.restart(epoch, 0.5).delay == 350ms);
    CHECK(b.left(epoch) == 0);
    b.forgive(2);
    CHECK(b.left(epoch) == 2);
    CHECK(b.restart(epoch, 0.5).delay == 200ms);
    b.forgive(100);
    CHECK(b.left(epoch) == 3);
    b.forgive(0);
    CHECK(b.left(epoch) == 3);
}

TEST_SUITE_END();

} // namespace test_actor_restart_budget
