#include "former_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace test_serve_batch_former {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;
using test::fake_request;
using test::requests;
using clock = test::former_clock;
using fixture = test::former_fixture;

constexpr auto start = test::former_start;

TEST_SUITE("batch_former")
{
    TEST_CASE("a lone request starts at once when nothing runs")
    {
        fixture f;
        auto& a = f.add();
        CHECK(f.next() == requests{&a});
        CHECK(f.former.running() == 1);
        CHECK(f.former.queued() == 0);
    }

    TEST_CASE("while a batch runs, requests wait until it ends")
    {
        fixture f;
        f.add();
        REQUIRE(f.next().size() == 1);
        auto& b = f.add();
        auto& c = f.add();
        CHECK(f.next().empty());
        CHECK(f.former.wake_at(f.now) == start + 100us);
        f.former.ended();
        CHECK(f.next() == requests{&b, &c});
    }

    TEST_CASE("while a batch runs, requests wait at most max_delay")
    {
        fixture f;
        f.add();
        REQUIRE(f.next().size() == 1);
        auto& b = f.add();
        f.now += 99us;
        CHECK(f.next().empty());
        f.now += 1us;
        CHECK(f.next() == requests{&b});
    }

    TEST_CASE("a full batch does not wait")
    {
        fixture f;
        f.add();
        REQUIRE(f.next().size() == 1);
        for (int i = 0; i < 5; ++i)
            f.add();
        CHECK(f.next().size() == 4);
        CHECK(f.next().empty());
        CHECK(f.former.queued() == 1);
    }

    TEST_CASE("with a fixed delay a lone request waits, although nothing runs")
    {
        auto r = test::former_rules();
        r.delay = serve::delay_rule::fixed;
        fixture f(r);
        auto& a = f.add();
        CHECK(f.next().empty());
        CHECK(f.former.wake_at(f.now) == start + 100us);
        f.now += 100us;
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("no more batches run than max_in_flight")
    {
        fixture f;
        for (int i = 0; i < 8; ++i)
            f.add();
        f.add(0, 1, {.priority = priority::high});
        CHECK(f.next().size() == 4);
        CHECK(f.next().size() == 4);
        f.now += 1s;
        CHECK(f.next().empty());
        CHECK(f.former.wake_at(f.now) == clock::time_point::max());
        f.former.ended();
        CHECK(f.next().size() == 1);
    }

    TEST_CASE("a batch starts at a preferred size, with the largest that is reached")
    {
        auto r = test::former_rules();
        r.max_rows = 16;
        r.preferred = {2, 6};
        fixture f(r);
        f.add();
        REQUIRE(f.next().size() == 1);
        f.add();
        CHECK(f.next().empty());
        for (int i = 0; i < 6; ++i)
            f.add();
        CHECK(f.next().size() == 6);
        CHECK(f.next().empty());
    }

    TEST_CASE("a batch with too much padding fills a smaller plan instead, if that is faster")
    {
        struct named {
            const char* name;
            std::uint32_t rows;
            std::uint32_t taken;
            void (*measure)(batch_former&);
        };
        const auto quick = [](batch_former& f) {
            f.measured(0, 2, 1ms);
            f.measured(0, 8, 4ms);
        };
        const auto slow = [](batch_former& f) {
            f.measured(0, 2, 3ms);
            f.measured(0, 8, 4ms);
        };
        const auto unknown = [](batch_former& f) { f.measured(0, 8, 4ms); };
        for (const named& c :
             {named{"fits the smallest", 1, 1, quick}, named{"fills the smallest", 2, 2, quick},
              named{"mostly padding", 3, 2, quick}, named{"half padding", 4, 4, quick}, named{"full", 8, 8, quick},
              named{"the smaller plan takes longer for each row", 3, 3, slow},
              named{"it is not known how long the smaller plan takes", 3, 3, unknown}}) {
            CAPTURE(c.name);
            auto r = test::former_rules();
            r.max_rows = 8;
            r.sizes = {2, 8};
            fixture f(r);
            c.measure(f.former);
            for (std::uint32_t i = 0; i < c.rows; ++i)
                f.add();
            CHECK(f.next().size() == c.taken);
        }
    }

    TEST_CASE("requests of several rows fill a batch without being split")
    {
        fixture f;
        auto& a = f.add(0, 3);
        auto& b = f.add(0, 2);
        auto& c = f.add(0, 1);
        CHECK(f.next() == requests{&a});
        f.former.ended();
        CHECK(f.next() == requests{&b, &c});
    }

    TEST_CASE("a request larger than the plan that could be filled is not left behind")
    {
        auto r = test::former_rules();
        r.max_rows = 64;
        r.sizes = {4, 64};
        fixture f(r);
        auto& a = f.add(0, 5);
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("requests of different shapes never share a batch")
    {
        fixture f;
        auto& a = f.add(1);
        auto& b = f.add(2);
        auto& c = f.add(1);
        CHECK(f.next() == requests{&a, &c});
        f.former.ended();
        CHECK(f.next() == requests{&b});
    }

    TEST_CASE("urgent requests come first, and others fill their batch")
    {
        fixture f;
        auto& low = f.add(0, 1, {.priority = priority::low});
        auto& normal = f.add();
        auto& high = f.add(0, 1, {.priority = priority::high});
        CHECK(f.next() == requests{&high, &normal, &low});
    }

    TEST_CASE("the group with the most urgent request is next")
    {
        fixture f;
        auto& a = f.add(1);
        auto& b = f.add(2, 1, {.priority = priority::high});
        CHECK(f.next() == requests{&b});
        f.former.ended();
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("each priority has its own limit")
    {
        fixture f;
        for (int i = 0; i < 8; ++i)
            CHECK(!f.add(0, 1, {.when_full = when_full::fail}).refused);
        CHECK(f.add(0, 1, {.when_full = when_full::fail}).refused == errc::queue_full);
        CHECK(!f.add(0, 1, {.priority = priority::high, .when_full = when_full::fail}).refused);
        CHECK(f.former.queued(priority::normal) == 8);
    }

    TEST_CASE("requests that may wait for room have a limit of their own")
    {
        auto r = test::former_rules();
        r.max_waiting = 2;
        fixture f(r);
        for (int i = 0; i < 10; ++i)
            CHECK(!f.add().refused);
        CHECK(f.add().refused == errc::queue_full);
        CHECK(f.add(0, 1, {.when_full = when_full::fail}).refused == errc::queue_full);
    }

    TEST_CASE("requests that are put back come before all others, in their order")
    {
        for (const auto order : {serve::completion_order::any, serve::completion_order::arrival}) {
            auto r = test::former_rules();
            r.order = order;
            fixture f(r);
            auto& a = f.add(1);
            auto& b = f.add(1, 1, {.deadline = start + 1s});
            REQUIRE(f.next() == requests{&a, &b});
            auto& c = f.add(2);
            auto& d = f.add(1);
            f.former.ended();
            f.former.put_back(b);
            f.former.put_back(a);
            CHECK(f.former.queued() == 4);
            const auto first = f.next();
            REQUIRE(first.size() >= 2);
            CHECK(first[0] == &a);
            CHECK(first[1] == &b);
            f.former.remove(c);
            if (first.size() == 2)
                f.former.remove(d);
            CHECK(f.former.queued() == 0);
        }
    }

    TEST_CASE("several batches that are put back keep the order of arrival")
    {
        auto r = test::former_rules();
        r.max_rows = 8;
        fixture f(r);
        auto& a = f.add();
        REQUIRE(f.next().size() == 1);
        auto& b = f.add();
        f.now += 100us;
        REQUIRE(f.next().size() == 1);
        auto& c = f.add();
        f.former.ended();
        f.former.put_back(a);
        f.former.ended();
        f.former.put_back(b);
        CHECK(f.next() == requests{&a, &b, &c});
    }

    TEST_CASE("many groups cost no more than their number")
    {
        auto r = test::former_rules();
        r.order = serve::completion_order::arrival;
        r.max_queued = {100'000, 100'000, 100'000};
        fixture f(r);
        for (std::uint64_t i = 0; i < 60'000; ++i)
            f.add(i, 1, {.deadline = start + 1s});
        f.now += 1s;
        const auto began = std::chrono::steady_clock::now();
        while (f.former.expired(f.now))
            ;
        // Quadratic work would take minutes.
        CHECK(std::chrono::steady_clock::now() - began < 30s);
        CHECK(f.former.queued() == 0);
    }

    TEST_CASE("once no request can follow, batches do not wait")
    {
        auto r = test::former_rules();
        r.delay = serve::delay_rule::fixed;
        fixture f(r);
        auto& a = f.add();
        CHECK(f.next().empty());
        f.former.close();
        CHECK(f.next() == requests{&a});
    }

    TEST_CASE("limits may be as large as they can be")
    {
        auto r = test::former_rules();
        r.max_queued = {~0ull, ~0ull, ~0ull};
        r.max_waiting = ~0ull;
        r.max_delay = std::chrono::nanoseconds::max();
        fixture f(r);
        f.add();
        REQUIRE(f.next().size() == 1);
        CHECK(!f.add().refused);
        CHECK(f.former.wake_at(f.now) == clock::time_point::max());
    }

    TEST_CASE("a removed request leaves no trace")
    {
        fixture f;
        auto& a = f.add(0, 1, {.deadline = start + 1s});
        f.former.remove(a);
        CHECK(f.former.queued() == 0);
        CHECK(f.next().empty());
        CHECK(f.former.wake_at(f.now) == clock::time_point::max());
    }

    TEST_CASE("what cannot start for another reason does not ask to be woken at once")
    {
        fixture f;
        f.add();
        f.now += 1s;
        requests out;
        CHECK(!f.former.next(f.now, out, [](std::uint64_t) { return false; }));
        CHECK(f.former.wake_at(f.now) == clock::time_point::max());
    }

    TEST_CASE("if one shape cannot start, another can")
    {
        fixture f;
        f.add(1);
        auto& b = f.add(2);
        requests out;
        CHECK(f.former.next(f.now, out, [](std::uint64_t shape) { return shape == 2; }));
        CHECK(out == requests{&b});
    }

    TEST_CASE("in order of arrival, batches contain neighbours only and priorities have no effect")
    {
        auto r = test::former_rules();
        r.order = serve::completion_order::arrival;
        r.max_in_flight = 8;
        fixture f(r);
        auto& a = f.add(1);
        auto& b = f.add(1);
        auto& c = f.add(2);
        auto& d = f.add(1, 1, {.priority = priority::high});
        CHECK(f.next() == requests{&a, &b});
        // It can grow no more, because another shape follows.
        CHECK(f.next() == requests{&c});
        CHECK(f.next().empty());
        f.now += 100us;
        CHECK(f.next() == requests{&d});
    }

    TEST_CASE("random arrivals, cancellations and ends: every request leaves once, in order, in a valid batch")
    {
        for (unsigned seed = 0; seed < 200; ++seed) {
            CAPTURE(seed);
            std::minstd_rand random(seed);
            const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
            auto r = test::former_rules();
            r.max_rows = 1 + pick(6);
            r.order = pick(2) == 0 ? serve::completion_order::any : serve::completion_order::arrival;
            r.delay = pick(2) == 0 ? serve::delay_rule::adaptive : serve::delay_rule::fixed;
            if (pick(2) == 0)
                r.sizes = {1, r.max_rows};
            if (pick(3) == 0)
                r.preferred = {1 + pick(r.max_rows)};
            const bool ordered = r.order == serve::completion_order::arrival;
            fixture f(r);
            std::vector<fake_request*> waiting;
            // The last sequence that left, by shape and priority.
            std::map<std::pair<std::uint64_t, priority>, std::uint64_t> left;
            std::uint64_t last = 0;
            const auto leave = [&](batch_request* one) { std::erase(waiting, static_cast<fake_request*>(one)); };
            for (int step = 0; step < 400; ++step) {
                f.now += std::chrono::microseconds(pick(40));
                switch (pick(5)) {
                case 0:
                case 1: {
                    exec_options how{.priority = static_cast<priority>(pick(3)), .when_full = when_full::fail};
                    if (pick(4) == 0)
                        how.deadline = f.now + std::chrono::microseconds(1 + pick(300));
                    auto& made = f.add(pick(3), 1 + pick(r.max_rows), how);
                    if (!made.refused)
                        waiting.push_back(&made);
                    break;
                }
                case 2:
                    if (!waiting.empty()) {
                        auto* gone = waiting[pick(static_cast<unsigned>(waiting.size()))];
                        f.former.remove(*gone);
                        leave(gone);
                    }
                    break;
                case 3:
                    if (f.former.running() > 0) {
                        f.former.ended();
                        f.former.measured(0, r.max_rows, std::chrono::microseconds(10 + pick(200)));
                    }
                    break;
                default: break;
                }
                while (auto* late = f.former.expired(f.now)) {
                    CHECK(late->options.deadline <= f.now);
                    leave(late);
                }
                const bool idle = f.former.running() == 0;
                bool started = false;
                for (requests batch = f.next(); !batch.empty(); batch = f.next()) {
                    started = true;
                    std::uint32_t rows = 0;
                    for (batch_request* one : batch) {
                        rows += one->rows;
                        CHECK(one->shape == batch.front()->shape);
                        CHECK(std::ranges::find(waiting, one) != waiting.end());
                        leave(one);
                        auto& before = left[{one->shape, one->options.priority}];
                        CHECK(before < one->sequence);
                        before = one->sequence;
                        if (ordered)
                            CHECK(last < one->sequence);
                        last = one->sequence;
                    }
                    CHECK(rows <= r.max_rows);
                    CHECK(f.former.running() <= r.max_in_flight);
                }
                if (idle && !waiting.empty() && r.delay == serve::delay_rule::adaptive)
                    CHECK(started);
                CHECK(f.former.queued() == waiting.size());
                if (!waiting.empty() && f.former.running() < r.max_in_flight)
                    CHECK(f.former.wake_at(f.now) <= f.now + r.max_delay);
            }
            while (f.former.pop())
                ;
            CHECK(f.former.queued() == 0);
        }
    }
}

} // namespace test_serve_batch_former
