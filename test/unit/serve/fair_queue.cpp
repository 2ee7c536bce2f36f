#include "fair_simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace test_serve_fair_queue {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using test::fair_simulation;
using options = serve::fair_share_options;
using names = std::vector<std::string>;

options one_at_a_time()
{
    options o;
    o.others.burst = 0ns;
    o.max_running = 1;
    return o;
}

/// One turn after another, until nothing waits.
names serve_all(fair_simulation& s)
{
    names order;
    do
        for (const auto& name : s.start())
            order.push_back(name);
    while (s.step());
    return order;
}

/// A sequence of events for a queue with a few tenants, as digits of a number, and what must hold after each of them.
class scripted {
public:
    static constexpr int tenants = 2;
    /// For each tenant: enter, end the oldest turn, cancel the newest waiting request.
    static constexpr int events = 3 * tenants;

    explicit scripted(const options& o) : queue(o) {}
    ~scripted()
    {
        while (queue.pop()) {
        }
    }

    /// False: the event is not possible.
    bool apply(int event)
    {
        const auto t = static_cast<std::size_t>(event % tenants);
        switch (event / tenants) {
        case 0: {
            auto& r = all.emplace_back();
            const bool full = waiting[t].size() >= limit_queued(t);
            const auto ec = queue.offer(r, t ? "b" : "a", {});
            must((ec == errc::queue_full) == full);
            if (!ec)
                waiting[t].push_back(&r);
            break;
        }
        case 1: {
            if (running[t].empty())
                return false;
            // Costs that are not the estimates.
            const int n = ++finished;
            queue.finish(running[t].front()->turn, nanoseconds(1'000'000 * (n * 7 % 5)));
            running[t].pop_front();
            break;
        }
        default:
            if (waiting[t].empty())
                return false;
            queue.remove(*waiting[t].back(), fair_queue::leaving::cancelled);
            waiting[t].pop_back();
            break;
        }
        while (fair_request* r = queue.next()) {
            std::size_t who = 0;
            while (who < tenants && (waiting[who].empty() || waiting[who].front() != r))
                ++who;
            // The oldest of a tenant.
            must(who < tenants);
            waiting[who].pop_front();
            running[who].push_back(r);
        }
        check();
        return true;
    }

private:
    std::uint64_t limit_queued(std::size_t t) const { return queue.options().tenants.at(t ? "b" : "a").max_queued; }
    std::uint64_t limit_running(std::size_t t) const { return queue.options().tenants.at(t ? "b" : "a").max_running; }

    // Millions of assertions of doctest would take most of the time.
    static void must(bool holds)
    {
        if (!holds)
            FAIL("a rule does not hold");
    }

    void check()
    {
        std::uint64_t queued = 0;
        std::uint64_t turns = 0;
        bool could = false;
        for (std::size_t t = 0; t < tenants; ++t) {
            queued += waiting[t].size();
            turns += running[t].size();
            must(running[t].size() <= limit_running(t));
            could = could || (!waiting[t].empty() && running[t].size() < limit_running(t));
        }
        must(queue.queued() == queued);
        must(queue.running() == turns);
        must(turns <= queue.options().max_running);
        // No place is idle while a request could use it.
        must(!(could && turns < queue.options().max_running));
        std::size_t i = 0;
        queue.for_each([&](const fair_tenant& t) {
            must(t.counts.queued == waiting[i].size());
            must(t.counts.running == running[i].size());
            must((t.in_flight == 0) == running[i].empty());
            ++i;
        });
    }

    fair_queue queue;
    std::deque<fair_request> all;
    std::array<std::deque<fair_request*>, tenants> waiting;
    std::array<std::deque<fair_request*>, tenants> running;
    int finished = 0;
};

/// All sequences of this many events.
void try_all(const options& o, int depth)
{
    std::vector<int> script;
    std::uint64_t tried = 0;
    const auto go = [&](auto&& self) -> void {
        scripted s(o);
        for (const int e : script)
            if (!s.apply(e))
                return;
        ++tried;
        if (static_cast<int>(script.size()) == depth)
            return;
        for (int e = 0; e < scripted::events; ++e) {
            script.push_back(e);
            self(self);
            script.pop_back();
        }
    };
    go(go);
    CHECK(tried > 1000);
}

TEST_SUITE("fair_queue")
{
    TEST_CASE("requests of one tenant run in their order, as many at a time as allowed")
    {
        options o = one_at_a_time();
        o.max_running = 2;
        fair_simulation s(o);
        for (int i = 0; i < 4; ++i)
            REQUIRE_FALSE(s.offer("a", 1ms));
        CHECK(s.start().size() == 2);
        CHECK(s.queue.queued() == 2);
        CHECK(s.start().empty());
        s.step();
        CHECK(s.start().size() == 1);
    }

    TEST_CASE("tenants take turns by their weights")
    {
        options o = one_at_a_time();
        o.tenants["a"] = {.weight = 2, .burst = 0ns};
        o.tenants["b"] = {.weight = 1, .burst = 0ns};
        fair_simulation s(o);
        for (int i = 0; i < 4; ++i)
            REQUIRE_FALSE(s.offer("a", 1ms));
        for (int i = 0; i < 2; ++i)
            REQUIRE_FALSE(s.offer("b", 1ms));
        CHECK(serve_all(s) == names{"a", "b", "a", "b", "a", "a"});
    }

    TEST_CASE("what counts is the time that was used, not the number of requests")
    {
        fair_simulation s(one_at_a_time());
        for (int i = 0; i < 2; ++i)
            REQUIRE_FALSE(s.offer("long", 4ms));
        for (int i = 0; i < 6; ++i)
            REQUIRE_FALSE(s.offer("short", 1ms));
        CHECK(serve_all(s) == names{"long", "short", "short", "short", "short", "long", "short", "short"});
    }

    TEST_CASE("every sequence of events keeps the limits, the order and the counts")
    {
        options o;
        o.max_running = 2;
        o.tenants["a"] = {.weight = 3, .burst = 0ns, .max_queued = 2};
        o.tenants["b"] = {.weight = 1, .minimum_share = 0.5, .max_queued = 3, .max_running = 1};
        try_all(o, 8);
        o.max_running = 1;
        o.tenants["b"].max_running = 2;
        try_all(o, 8);
    }

    TEST_CASE("random sequences of events keep the limits, the order and the counts")
    {
        std::mt19937 random(11);
        for (int round = 0; round < 200; ++round) {
            options o;
            o.max_running = 1 + random() % 4;
            for (const char* name : {"a", "b"}) {
                auto& t = o.tenants[name];
                t.weight = 1 + random() % 5;
                t.burst = std::chrono::milliseconds(random() % 3);
                t.minimum_share = random() % 2 ? 0.4 : 0;
                t.max_queued = 1 + random() % 6;
                t.max_running = 1 + random() % 3;
            }
            scripted s(o);
            for (int i = 0; i < 300; ++i)
                s.apply(static_cast<int>(random() % scripted::events));
        }
    }

    TEST_CASE("full queues name the tenant and the limit")
    {
        options o = one_at_a_time();
        o.name = "share";
        o.others.max_queued = 2;
        o.max_queued = 3;
        fair_simulation s(o);
        for (int i = 0; i < 2; ++i)
            REQUIRE_FALSE(s.offer("a", 1ms));
        auto ec = s.offer("a", 1ms);
        CHECK(ec == errc::queue_full);
        CHECK(ec.message() == "share: tenant a has max_queued (2) waiting requests");
        REQUIRE_FALSE(s.offer("b", 1ms));
        ec = s.offer("b", 1ms);
        CHECK(ec == errc::queue_full);
        CHECK(ec.message() == "share: tenant b: all tenants together have max_queued (3) waiting requests");
        CHECK(s.queue.all().refused == 2);
    }

    TEST_CASE("a request that would be too late is refused at once, others expire")
    {
        options o = one_at_a_time();
        o.name = "share";
        fair_simulation s(o);
        auto ec = s.offer("a", 1ms, {}, s.now);
        CHECK(ec == errc::deadline_exceeded);
        CHECK(ec.message() == "share: tenant a: the deadline had passed when the request arrived");
        // Ten requests of 1 ms, by the estimate.
        for (int i = 0; i < 10; ++i)
            REQUIRE_FALSE(s.offer("a", 1ms));
        ec = s.offer("a", 1ms, {}, s.now + 9ms);
        CHECK(ec == errc::deadline_exceeded);
        CHECK(ec.message() ==
              "share: tenant a: its 10 waiting requests leave no time for a further one before its deadline");
        fair_request r;
        r.deadline = s.now + 11ms;
        REQUIRE_FALSE(s.queue.offer(r, "a", s.now));
        CHECK(s.queue.wake_at() == r.deadline);
        // That of another tenant is tried.
        fair_request b;
        b.deadline = s.now + 2ms;
        REQUIRE_FALSE(s.queue.offer(b, "b", s.now));
        CHECK(s.queue.wake_at() == b.deadline);
        CHECK(s.queue.expired(s.now + 1ms) == nullptr);
        CHECK(s.queue.expired(s.now + 2ms) == &b);
        CHECK(s.queue.expired(s.now + 2ms) == nullptr);
        CHECK(s.queue.expired(r.deadline) == &r);
        CHECK(s.queue.wake_at() == exec_options::no_deadline);
        CHECK(s.queue.all().expired == 4);
        CHECK(s.queue.queued() == 10);
    }

    TEST_CASE("work that did not run costs nothing and does not change the estimate")
    {
        options o = one_at_a_time();
        fair_simulation s(o);
        REQUIRE_FALSE(s.offer("a", 5ms));
        s.run_out();
        REQUIRE_FALSE(s.offer("a", 0ms));
        s.run_out();
        REQUIRE_FALSE(s.offer("a", -3ms));
        s.run_out();
        s.queue.for_each([](const fair_tenant& t) {
            CHECK(nanoseconds(t.estimate) == 5ms);
            CHECK(t.counts.device_time == 5ms);
            CHECK(t.counts.started == 3);
        });
    }

    TEST_CASE("idle tenants without debts are forgotten when others need their places")
    {
        options o = one_at_a_time();
        o.name = "share";
        o.tenants["known"] = {};
        o.max_tenants = 2;
        fair_simulation s(o);
        for (const char* name : {"a", "b", "c", "d"}) {
            REQUIRE_FALSE(s.offer(name, 1ms));
            s.run_out();
        }
        CHECK(s.queue.forgotten() == 2);
        REQUIRE_FALSE(s.offer("c", 1ms));
        REQUIRE_FALSE(s.offer("d", 1ms));
        const auto ec = s.offer("e", 1ms);
        CHECK(ec == errc::queue_full);
        CHECK(ec.message() ==
              "share: tenant e is unknown, and max_tenants (2) others have requests or owe device time");
        // Those with options of their own always have a place.
        REQUIRE_FALSE(s.offer("known", 1ms));
        s.run_out();
        CHECK(s.queue.all().started == 7);
    }

    TEST_CASE("new tenants without end do not keep the others from their turns")
    {
        options o = one_at_a_time();
        o.max_tenants = 50;
        o.tenants["honest"] = {.burst = 0ns};
        fair_simulation s(o);
        int honest = 0;
        int refused = 0;
        for (int i = 0; i < 20000; ++i) {
            while (s.waiting("honest") < 2)
                s.must_offer("honest", 1ms);
            if (s.offer("made_up" + std::to_string(i), 1ms))
                ++refused;
            for (const auto& name : s.start())
                honest += name == "honest";
            s.step();
        }
        // At least one of 51.
        CHECK(honest > 20000 / 60);
        CHECK(refused > 0);
    }

    TEST_CASE("every request starts within a bounded time, whatever the others do")
    {
        // The tenant with the smallest weight, against bursts, minimum shares, wrong estimates and tenants that come
        // and go.
        std::mt19937_64 random(2);
        options o;
        o.max_running = 3;
        o.max_tenants = 20;
        o.others = {.weight = 5, .burst = 20ms};
        o.tenants["weak"] = {.weight = 1, .burst = 0ns};
        o.tenants["strong"] = {.weight = 50, .burst = 100ms};
        o.tenants["sure"] = {.weight = 1, .burst = 50ms, .minimum_share = 0.5};
        fair_simulation s(o);
        // Its virtual time comes when each other one had its weight's worth of the longest request, nine tenths of all
        // may go to minimum shares, and each may have its burst and the requests that run before.
        const double weights = 1 + 50 + 1 + 20 * 5;
        const auto bound = nanoseconds(static_cast<std::int64_t>(10 * (weights * 4e6 + 23 * (100e6 + 3 * 4e6))));
        nanoseconds longest{};
        nanoseconds since = s.total;
        int starts = 0;
        while (starts < 300) {
            const auto cost = [&] { return std::chrono::microseconds(100 + random() % 3900); };
            if (s.waiting("weak") == 0) {
                s.must_offer("weak", cost());
                since = s.total;
            }
            for (const char* name : {"strong", "sure"})
                if (random() % 4)
                    while (s.waiting(name) < 3)
                        s.must_offer(name, cost(), std::chrono::microseconds(random() % 100000));
            for (int i = 0; i < 2; ++i)
                (void)s.offer("guest" + std::to_string(random() % 30), cost());
            for (const auto& name : s.start())
                if (name == "weak") {
                    ++starts;
                    longest = std::max(longest, s.total - since);
                }
            s.step();
            if (s.total - since >= bound)
                FAIL("the weak tenant starves");
        }
        CHECK(longest > 0ns);
    }

    TEST_CASE("100,000 tenants")
    {
        // In linear time this would take hours.
        constexpr int count = 100'000;
        options o = one_at_a_time();
        o.max_running = 8;
        o.max_tenants = count;
        o.max_queued = 2 * count;
        fair_simulation s(o);
        std::vector<std::string> who;
        for (int i = 0; i < count; ++i)
            who.push_back(std::to_string(i));
        for (int round = 0; round < 2; ++round)
            for (const auto& name : who)
                s.must_offer(name, 1ms);
        std::vector<bool> served(count);
        int first_round = 0;
        for (int n = 0; n < count + 8;) {
            for (const auto& name : s.start()) {
                ++n;
                const auto i = static_cast<std::size_t>(std::stoi(name));
                first_round += !served[i];
                served[i] = true;
            }
            s.step();
        }
        // Everybody had one before anybody had two.
        CHECK(first_round == count);
        s.run_out();
        CHECK(s.queue.all().started == 2 * count);
    }
}

} // namespace test_serve_fair_queue
