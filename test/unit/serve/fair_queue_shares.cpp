#include "fair_simulation.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

// The shares that tenants get, by simulation.
namespace test_serve_fair_queue_shares {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using test::fair_simulation;
using options = serve::fair_share_options;
using tenants = fair_simulation::tenants;

/// Random costs with this mean; some are 20 times as long as others.
std::function<nanoseconds()> around(std::mt19937_64& random, nanoseconds mean)
{
    return [&random, mean] {
        std::uniform_real_distribution<double> d(0.1, 1.9);
        return nanoseconds(static_cast<std::int64_t>(d(random) * static_cast<double>(mean.count())));
    };
}

std::function<nanoseconds()> always(nanoseconds cost)
{
    return [cost] { return cost; };
}

std::string name_of(int i)
{
    return "tenant" + std::to_string(i);
}

options no_burst()
{
    options o;
    o.others.burst = 0ns;
    o.max_running = 1;
    return o;
}

TEST_SUITE("fair_queue_shares")
{
    TEST_CASE("100 tenants with random costs get the device time that their weights say")
    {
        for (const std::uint64_t places : {1, 4, 16}) {
            CAPTURE(places);
            std::mt19937_64 random(places);
            options o;
            o.max_running = places;
            tenants all;
            double weights = 0;
            for (int i = 0; i < 100; ++i) {
                auto& t = o.tenants[name_of(i)];
                t.weight = static_cast<std::uint32_t>(1 + random() % 100);
                weights += t.weight;
                all[name_of(i)] = {around(random, std::chrono::microseconds(100 + random() % 5000)), 20};
            }
            fair_simulation s(o);
            s.saturate(all, 10s);
            for (int window = 0; window < 3; ++window) {
                s.mark();
                s.saturate(all, 60s);
                for (int i = 0; i < 100; ++i) {
                    const double due = o.tenants[name_of(i)].weight / weights;
                    // At most 0.1 percentage points of all, where 1 is the goal.
                    CHECK(s.share_of(name_of(i)) == doctest::Approx(due).scale(1).epsilon(0.001));
                }
            }
        }
    }

    TEST_CASE("tenants come and go, and the shares follow those that are there")
    {
        std::mt19937_64 random(7);
        options o;
        o.max_running = 3;
        o.others.burst = 10ms;
        for (int i = 0; i < 10; ++i)
            o.tenants[name_of(i)] = {.weight = static_cast<std::uint32_t>(i + 1), .burst = 10ms};
        fair_simulation s(o);
        for (int period = 0; period < 25; ++period) {
            tenants some;
            double weights = 0;
            for (int i = 0; i < 10; ++i)
                if (random() % 2) {
                    some[name_of(i)] = {around(random, 1ms), 8};
                    weights += i + 1;
                }
            if (some.empty())
                continue;
            s.mark();
            s.saturate(some, 20s);
            CAPTURE(period);
            // At the beginning there are requests of the last period, and bursts.
            for (const auto& [name, b] : some)
                CHECK(s.share_of(name) == doctest::Approx(o.tenants[name].weight / weights).scale(1).epsilon(0.01));
        }
    }

    TEST_CASE("a tenant with wrong estimates gains nothing")
    {
        for (const nanoseconds claim : {nanoseconds(1), nanoseconds(100us), nanoseconds(100ms), nanoseconds(10min)}) {
            for (const std::uint64_t places : {1, 4}) {
                CAPTURE(claim.count());
                CAPTURE(places);
                std::mt19937_64 random(3);
                options o = no_burst();
                o.max_running = places;
                fair_simulation s(o);
                tenants all;
                for (int i = 0; i < 8; ++i)
                    all[name_of(i)] = {around(random, 2ms), 16};
                all[name_of(0)].claim = claim;
                s.saturate(all, 10s);
                s.mark();
                s.saturate(all, 100s);
                CHECK(s.share_of(name_of(0)) <= 1. / 8 + 0.01);
                for (int i = 1; i < 8; ++i)
                    CHECK(s.share_of(name_of(i)) >= 1. / 8 - 0.01);
            }
        }
    }

    TEST_CASE("a tenant that exaggerates while it is alone does not delay those who come later")
    {
        options o = no_burst();
        o.max_running = 4;
        fair_simulation s(o);
        const tenants first{{"first", {always(1ms), 8, 10s}}};
        s.saturate(first, 100ms);
        tenants both = first;
        both["second"] = {always(1ms), 8};
        s.mark();
        s.saturate(both, 100ms);
        CHECK(s.share_of("second") >= 0.49);
    }

    TEST_CASE("estimates follow what is measured")
    {
        options o = no_burst();
        fair_simulation s(o);
        s.saturate({{"a", {always(7ms)}}}, 70ms);
        s.queue.for_each([](const detail::fair_tenant& t) { CHECK(nanoseconds(t.estimate) == 7ms); });
        s.saturate({{"a", {always(21ms)}}}, 3s);
        s.queue.for_each([](const detail::fair_tenant& t) { CHECK(nanoseconds(t.estimate) > 20ms); });
    }

    TEST_CASE("a minimum share holds against any weights, and is no limit")
    {
        for (const std::uint64_t places : {1, 4}) {
            CAPTURE(places);
            std::mt19937_64 random(5);
            options o;
            o.max_running = places;
            o.tenants["small"] = {.weight = 1, .burst = 0ns, .minimum_share = 0.2};
            o.tenants["smaller"] = {.weight = 1, .burst = 0ns, .minimum_share = 0.05};
            o.tenants["large"] = {.weight = 300, .burst = 0ns, .minimum_share = 0.1};
            o.tenants["larger"] = {.weight = 600, .burst = 0ns};
            fair_simulation s(o);
            tenants all;
            for (const auto& [name, t] : o.tenants)
                all[name] = {around(random, 2ms), 16};
            s.saturate(all, 5s);
            s.mark();
            s.saturate(all, 100s);
            CHECK(s.share_of("small") == doctest::Approx(0.2).scale(1).epsilon(0.005));
            CHECK(s.share_of("smaller") == doctest::Approx(0.05).scale(1).epsilon(0.005));
            // The others divide the rest by their weights.
            CHECK(s.share_of("large") == doctest::Approx(0.25).scale(1).epsilon(0.01));
            CHECK(s.share_of("larger") == doctest::Approx(0.5).scale(1).epsilon(0.01));

            // What was guaranteed is no debt: without the large ones, the weights count at once.
            all.erase("large");
            all.erase("larger");
            s.saturate(all, 200ms);
            s.mark();
            s.saturate(all, 2s);
            CHECK(s.share_of("small") == doctest::Approx(0.5).scale(1).epsilon(0.02));
        }
    }

    TEST_CASE("minimum shares of nine tenths leave a tenth for the others")
    {
        options o;
        o.max_running = 2;
        for (int i = 0; i < 3; ++i)
            o.tenants[name_of(i)] = {.minimum_share = 0.3};
        fair_simulation s(o);
        tenants all{{"other", {always(1ms), 4}}};
        for (int i = 0; i < 3; ++i)
            all[name_of(i)] = {always(1ms), 4};
        s.saturate(all, 20s);
        CHECK(s.share_of("other") == doctest::Approx(0.1).scale(1).epsilon(0.005));
    }

    TEST_CASE("a burst is served before others, and is bounded")
    {
        options o = no_burst();
        o.tenants["quiet"] = {.burst = 50ms};
        fair_simulation s(o);
        const tenants busy{{"busy", {always(1ms), 4}}};
        // It is known, and then has no requests for a long time.
        REQUIRE_FALSE(s.offer("quiet", 1ms));
        s.saturate(busy, 10s);
        s.mark();
        tenants both = busy;
        both["quiet"] = {always(1ms), 200};
        s.saturate(both, 50ms);
        // One request of the other ran before, and the order of equal ones is open.
        CHECK(s.used_by("quiet") >= 48ms);
        s.mark();
        s.saturate(both, 1s);
        CHECK(s.share_of("quiet") == doctest::Approx(0.5).scale(1).epsilon(0.01));
        // A short pause saves up what it would have had.
        s.run_out();
        s.saturate(busy, 40ms);
        s.mark();
        s.saturate(both, 100ms);
        CHECK(s.used_by("quiet") >= 50ms);
        CHECK(s.used_by("quiet") <= 80ms);
    }

    TEST_CASE("a tenant that its own limit holds back saves up no more than its burst")
    {
        options o = no_burst();
        o.max_running = 4;
        o.tenants["limited"] = {.weight = 100, .burst = 0ns, .max_running = 1};
        for (int i = 0; i < 10; ++i)
            o.tenants[name_of(i)] = {.weight = 1000, .burst = 0ns};
        fair_simulation s(o);
        tenants all{{"limited", {always(1ms), 4}}, {"other", {always(1ms), 8}}};
        s.saturate(all, 10s);
        // Its one turn, always.
        CHECK(s.share_of("limited") == doctest::Approx(0.25).scale(1).epsilon(0.01));
        // A tenant that comes later gets its share at once.
        all["new"] = {always(1ms), 8};
        s.mark();
        s.saturate(all, 1s);
        CHECK(s.share_of("limited") == doctest::Approx(0.25).scale(1).epsilon(0.01));
        CHECK(s.share_of("new") == doctest::Approx(0.375).scale(1).epsilon(0.01));
        // Its weight gives it less than its one turn, and what it could not use before does not count.
        for (int i = 0; i < 10; ++i)
            all[name_of(i)] = {always(1ms), 8};
        s.saturate(all, 100ms);
        s.mark();
        s.saturate(all, 10s);
        CHECK(s.share_of("limited") == doctest::Approx(0.01).scale(1).epsilon(0.005));
    }

    TEST_CASE("long requests of one tenant are paid for")
    {
        options o = no_burst();
        o.max_running = 2;
        fair_simulation s(o);
        const tenants all{{"long", {always(500ms), 3}}, {"short", {always(1ms), 10}}};
        s.saturate(all, 200s);
        CHECK(s.share_of("long") == doctest::Approx(0.5).scale(1).epsilon(0.01));
    }

    TEST_CASE("nothing overflows in years of device time")
    {
        options o = no_burst();
        o.tenants["light"] = {.weight = 1};
        o.tenants["heavy"] = {.weight = 1'000'000, .minimum_share = 0.000001};
        fair_simulation s(o);
        const auto year = std::chrono::hours(24 * 365);
        s.now = {};
        // More than a clock of 64 bits has for the virtual time of weight 1.
        for (int i = 0; i < 100; ++i) {
            const auto both = [&] {
                s.must_offer("light", year / 2);
                s.must_offer("heavy", year / 2);
            };
            both();
            s.run_out();
        }
        const nanoseconds longest(detail::fair_queue::longest);
        s.now = {};
        for (int i = 0; i < 50; ++i) {
            detail::fair_request r;
            REQUIRE_FALSE(s.queue.offer(r, i % 2 ? "light" : "heavy", s.now));
            REQUIRE(s.queue.next() == &r);
            s.queue.finish(r.turn, nanoseconds::max());
        }
        CHECK(s.queue.all().device_time == nanoseconds::max());
        CHECK(longest < nanoseconds::max());
        // It still divides by weight.
        s.total = {};
        tenants all{{"light", {always(1ms), 4}}, {"other", {always(1ms), 4}}};
        s.mark();
        s.saturate(all, 10s);
        CHECK(s.share_of("light") == doctest::Approx(0.5).scale(1).epsilon(0.01));
    }
}

} // namespace test_serve_fair_queue_shares
