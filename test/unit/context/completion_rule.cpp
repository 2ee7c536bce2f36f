#include "context/completion_rule.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using rule = detail::completion_rule;
using action = rule::action;

constexpr detail::clock::time_point start{1h};

std::string text(action a)
{
    return a == action::idle ? "idle" : a == action::poll ? "poll" : "arm";
}

} // namespace

TEST_SUITE_BEGIN("completion_rule");

TEST_CASE("with nothing in flight there is nothing to learn, under every strategy")
{
    for (const auto c : {completion::adaptive, completion::host_fn, completion::polled, completion::sync}) {
        rule r({.lanes = {}, .completion = c});
        CHECK(r.decide(false, false, start) == action::idle);
        CHECK(r.decide(false, true, start) == action::idle);
    }
}

TEST_CASE("polled always polls, host_fn and sync always arm")
{
    rule polled({.lanes = {}, .completion = completion::polled});
    rule host_fn({.lanes = {}, .completion = completion::host_fn});
    rule sync({.lanes = {}, .completion = completion::sync});
    for (const auto at : {0ns, 1ns, 20000ns, 3600000000000ns})
        for (const bool progressed : {false, true}) {
            CHECK(polled.decide(true, progressed, start + at) == action::poll);
            CHECK(host_fn.decide(true, progressed, start + at) == action::arm);
            CHECK(sync.decide(true, progressed, start + at) == action::arm);
        }
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
        CHECK(text(r.decide(c.in_flight, c.progressed, start + c.at)) == text(c.wanted));
    }
}

TEST_CASE("adaptive without a budget never polls")
{
    rule r({.lanes = {}, .completion = completion::adaptive, .spin_budget = 0ns});
    CHECK(r.decide(true, true, start) == action::arm);
    CHECK(r.decide(true, false, start) == action::arm);
}

TEST_SUITE_END();
