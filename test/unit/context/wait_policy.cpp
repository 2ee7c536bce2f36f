#include "context/completion/wait_policy.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_context_wait_policy {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using rule = detail::wait_policy;
using action = rule::action;

constexpr detail::clock::time_point start{1h};

std::string text(action a)
{
    switch (a) {
    case action::idle: return "idle";
    case action::poll: return "poll";
    case action::arm_and_poll: return "arm_and_poll";
    case action::wait: return "wait";
    case action::arm: break;
    }
    return "arm";
}

} // namespace

TEST_SUITE_BEGIN("wait_policy");

TEST_CASE("every strategy is idle with nothing in flight")
{
    for (const auto c : {completion::adaptive, completion::host_fn, completion::polled, completion::sync}) {
        rule r({.lanes = {}, .completion = c});
        CHECK(r.decide(false, false, start, {}).what == action::idle);
        CHECK(r.decide(false, true, start, {}).what == action::idle);
    }
}

TEST_CASE("polled always polls, sync always arms")
{
    rule polled({.lanes = {}, .completion = completion::polled});
    rule sync({.lanes = {}, .completion = completion::sync});
    for (const auto at : {0ns, 1ns, 20000ns, 3600000000000ns})
        for (const bool progressed : {false, true}) {
            CHECK(polled.decide(true, progressed, start + at, {}).what == action::poll);
            CHECK(sync.decide(true, progressed, start + at, {}).what == action::arm);
        }
}

TEST_CASE("on a single CPU shared with the work, adaptive decides like host_fn")
{
    const context_options adaptive{.lanes = {}, .completion = completion::adaptive};
    const context_options host_fn{.lanes = {}, .completion = completion::host_fn};
    rule shared(adaptive, 1);
    rule told(host_fn);
    rule two(adaptive, 2);
    rule own(adaptive);
    const rule::expected_end soon{start + 30us, 30us, true};
    for (const auto at : {0us, 3us, 7us, 15us, 25us, 40us, 1000us}) {
        CAPTURE(at.count());
        const bool progressed = at == 0us;
        const auto a = shared.decide(true, progressed, start + at, soon);
        const auto b = told.decide(true, progressed, start + at, {});
        CHECK(text(a.what) == text(b.what));
        CHECK(a.until == b.until);
        CHECK(a.look_at == b.look_at);
        CHECK(text(two.decide(true, progressed, start + at, soon).what) ==
              text(own.decide(true, progressed, start + at, soon).what));
    }
    // A policy without a spin budget does not start to poll.
    context_options never = adaptive;
    never.spin_budget = 0ns;
    rule quiet(never, 1);
    CHECK(quiet.decide(true, true, start, {}).what == action::arm);
    // An explicitly selected strategy is not changed.
    rule polled({.lanes = {}, .completion = completion::polled}, 1);
    CHECK(polled.decide(true, true, start, {}).what == action::poll);
}

TEST_CASE("adaptive polls for its budget after the last progress, then arms")
{
    struct row {
        std::chrono::nanoseconds at;
        bool in_flight;
        bool progressed;
        action wanted;
    };
    const row rows[] = {
        {0ns, true, true, action::poll},    {1ns, true, false, action::poll},   {99ns, true, false, action::poll},
        {100ns, true, false, action::arm},  {500ns, true, false, action::arm},  {600ns, true, true, action::poll},
        {699ns, true, false, action::poll}, {700ns, true, false, action::arm},  {800ns, false, true, action::idle},
        {850ns, true, false, action::poll}, {900ns, true, false, action::arm},  {2000ns, false, false, action::idle},
        {2001ns, true, false, action::arm}, {2002ns, true, true, action::poll},
    };
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 100ns});
    for (const auto& c : rows) {
        CAPTURE(c.at.count());
        CHECK(text(r.decide(c.in_flight, c.progressed, start + c.at, {}).what) == text(c.wanted));
    }
}

TEST_CASE("adaptive without a budget never polls")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 0ns});
    CHECK(r.decide(true, true, start, {}).what == action::arm);
    CHECK(r.decide(true, false, start, {}).what == action::arm);
}

TEST_CASE("host_fn arms at once, and polls a little longer before it sleeps")
{
    rule r({.lanes = {}, .completion = completion::host_fn});
    CHECK(r.decide(true, true, start, {}).what == action::arm_and_poll);
    CHECK(r.decide(true, false, start + rule::last_look - 1ns, {}).what == action::arm_and_poll);
    CHECK(r.decide(true, false, start + rule::last_look, {}).what == action::arm);
    CHECK(r.decide(true, true, start + 1s, {}).what == action::arm_and_poll);
}

TEST_CASE("adaptive polls around the estimated end of an op, and sleeps until then")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 20us});
    const rule::expected_end next{start + 700us, 700us};
    CHECK(r.decide(true, true, start, next).what == action::poll);
    const auto asleep = r.decide(true, false, start + 30us, next);
    CHECK(asleep.what == action::arm);
    CHECK(asleep.look_at == next.end - 240us);
    auto relied_upon = next;
    relied_upon.reliable = true;
    const auto napping = r.decide(true, false, start + 30us, relied_upon);
    CHECK(napping.what == action::wait);
    CHECK(napping.look_at == start + 30us + rule::nap);
    CHECK(r.decide(true, false, next.end - 240us, next).what == action::poll);
    CHECK(r.decide(true, false, next.end - 240us, next).due);
    CHECK(r.decide(true, false, next.end + 239us, next).what == action::poll);
    const auto over = r.decide(true, false, next.end + 240us, next);
    CHECK(over.what == action::arm);
    CHECK(over.look_at == detail::clock::time_point::max());
}

TEST_CASE("before a reliable estimated end, adaptive looks once per nap or per 1/32 of the duration")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 20us});
    const rule::expected_end brief{start + 3ms, 3ms, true};
    const rule::expected_end lengthy{start + 320ms, 320ms, true};
    for (const auto at : {30us, 1000us, 2200us}) {
        const auto nap = r.decide(true, false, start + at, brief);
        CHECK(nap.what == action::wait);
        CHECK(nap.look_at == start + at + rule::nap);
    }
    CHECK(r.decide(true, false, brief.end - 240us - rule::nap, brief).look_at == brief.end - 240us);
    CHECK(r.decide(true, false, start + 1ms, lengthy).look_at == start + 11ms);
    CHECK(r.decide(true, false, start + 305ms, lengthy).look_at == start + 315ms);
    CHECK(r.decide(true, false, start + 315ms, lengthy).look_at == lengthy.end - 240us);
}

TEST_CASE("adaptive polls if less than a nap remains before a reliable estimated end")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 20us});
    const rule::expected_end next{start + 3ms, 3ms, true};
    const auto begin = next.end - 240us;
    for (const auto early : {1ns, 100'000ns, rule::nap.count() * 1ns - 1ns}) {
        const auto awake = r.decide(true, false, begin - early, next);
        CHECK(awake.what == action::poll);
        CHECK(awake.until == begin);
        // The expected end is not near yet.
        CHECK_FALSE(awake.due);
    }
    CHECK(r.decide(true, false, begin, next).due);
}

TEST_CASE("adaptive polls for 24 budgets around the end of an op of any length")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 20us});
    for (const std::chrono::nanoseconds length : {std::chrono::nanoseconds(1ms), std::chrono::nanoseconds(320ms)}) {
        const rule::expected_end next{start + length, length};
        CHECK(r.decide(true, false, start + 30us, next).look_at == next.end - 240us);
        CHECK(r.decide(true, false, next.end + 239us, next).what == action::poll);
        CHECK(r.decide(true, false, next.end + 240us, next).what == action::arm);
    }
}

TEST_CASE("adaptive without a budget does not poll around an estimated end")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 0ns});
    const rule::expected_end next{start + 10ms, 10ms, true};
    for (const std::chrono::microseconds at : {1000us, 9900us, 10000us, 10100us}) {
        CHECK(r.decide(true, false, start + at, next).what == action::arm);
        CHECK(r.decide(true, false, start + at, next).look_at == detail::clock::time_point::max());
    }
}

TEST_SUITE_END();

} // namespace test_context_wait_policy
