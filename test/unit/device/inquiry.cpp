#include "device/inquiry.hpp"

#include "device/poison_count.hpp"
#include "device/run_pace.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>

namespace test_device_inquiry {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;

struct plain final : request {
    void post() override {}
    void destroy() noexcept override {}
};

constexpr auto by_fault = loss_cause::fault;
constexpr auto outside = loss_cause::outside;

} // namespace

TEST_SUITE_BEGIN("inquiry");

TEST_CASE("a request is convicted by a fault while it is alone, and by nothing else")
{
    for (const bool alone : {false, true})
        for (const auto cause : {by_fault, outside}) {
            CAPTURE(alone);
            CAPTURE(int(cause));
            plain r;
            inquiry i;
            CHECK_FALSE(i.lost(by_fault, true).convicted);
            if (alone)
                i.started(r, 7);
            const auto v = i.lost(cause, true);
            CHECK(v.convicted == (alone && cause == by_fault));
            CHECK(v.alone == (alone ? &r : nullptr));
            CHECK(v.plan == (alone ? 7 : 0));
        }
}

TEST_CASE("a request that has ended, or no longer waits for the verdict, is not convicted")
{
    plain r;
    inquiry i;
    i.lost(by_fault, true);
    i.started(r, 1);
    CHECK(i.is_alone(r));
    i.ended(r);
    CHECK_FALSE(i.is_alone(r));
    CHECK_FALSE(i.lost(by_fault, true).convicted);
}

TEST_CASE("a request that its caller gave up is convicted without being named")
{
    plain r;
    inquiry i;
    i.lost(by_fault, true);
    i.started(r, 3);
    i.answered(r);
    i.ended(r);
    const auto v = i.lost(by_fault, false);
    CHECK(v.convicted);
    CHECK(v.alone == nullptr);
    CHECK(v.plan == 3);
    CHECK(v.earlier == 1);
}

TEST_CASE("the first conviction explains the fault that began the inquiry, and no other loss")
{
    std::array<plain, 3> r;
    inquiry i;
    i.lost(by_fault, true);
    i.started(r[0], 0);
    CHECK(i.lost(by_fault, true).earlier == 1);
    i.started(r[1], 0);
    CHECK(i.lost(by_fault, true).earlier == 0);
    i.started(r[2], 0);
    i.ended(r[2]);
    i.close();
    // The next one begins with an end from outside.
    i.lost(outside, true);
    i.started(r[0], 0);
    CHECK(i.lost(by_fault, true).earlier == 0);
}

TEST_CASE("a loss while no suspect runs, such as while a plan is loaded, is not explained by a later conviction")
{
    plain r;
    inquiry i;
    i.lost(by_fault, true);
    i.lost(by_fault, true);
    i.started(r, 0);
    CHECK(i.lost(by_fault, true).earlier == 1);
}

TEST_CASE("an inquiry that ends without a conviction leaves its loss unexplained")
{
    plain r;
    inquiry i;
    i.lost(by_fault, true);
    i.close();
    i.lost(by_fault, true);
    i.started(r, 0);
    CHECK(i.lost(by_fault, true).earlier == 1);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("poison_count");

TEST_CASE("only more runs than the limit within a minute are too many")
{
    poison_count c(2);
    const poison_count::time_point t{};
    CHECK_FALSE(c.add(t));
    CHECK_FALSE(c.add(t + 1s));
    CHECK(c.add(t + 59s));
    // The first two no longer count.
    CHECK_FALSE(c.add(t + 61s));
    CHECK(c.add(t + 62s));
    c.reset();
    CHECK_FALSE(c.add(t + 63s));
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("run_pace");

TEST_CASE("nothing is overdue without a rule, or before the first run has ended")
{
    run_pace off({});
    off.ended(1ms);
    CHECK(off.limit() == run_pace::duration::max());
    run_pace on({.factor = 4, .at_least = 10ms});
    CHECK(on.limit() == run_pace::duration::max());
    on.ended(1ms);
    CHECK(on.limit() == 10ms);
}

TEST_CASE("a run is overdue after a multiple of what the last runs took, and each false alarm doubles it")
{
    run_pace p({.factor = 4, .at_least = 10ms});
    for (int i = 0; i < 100; ++i)
        p.ended(20ms);
    CHECK(p.limit() == 80ms);
    p.false_alarm();
    CHECK(p.limit() == 160ms);
    for (int i = 0; i < 100; ++i)
        p.ended(40ms);
    CHECK(p.limit() > 310ms);
    CHECK(p.limit() <= 320ms);
    for (int i = 0; i < 100; ++i)
        p.false_alarm();
    p.ended(24h);
    CHECK(p.limit() <= 24h);
    run_pace endless({.factor = std::numeric_limits<double>::infinity(), .at_least = 10ms});
    endless.ended(0ms);
    CHECK(endless.limit() == 24h);
}

TEST_SUITE_END();

} // namespace test_device_inquiry
