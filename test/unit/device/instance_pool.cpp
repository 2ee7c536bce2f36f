#include "device/admission.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <random>
#include <vector>

namespace test_device_instance_pool {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::admission;
using detail::instance_pool;
using detail::suspicion;

struct plain final : detail::request {
    void post() override {}
    void destroy() noexcept override {}
};

/// An admission queue with a plan of three instances.
struct fixture {
    fixture() { gate.add_pool(pool); }

    ~fixture()
    {
        while (gate.pop()) {
        }
        gate.remove_pool(pool);
    }

    plain& make(instance_pool* p)
    {
        auto& r = requests.emplace_back();
        r.pool = p;
        r.sequence = requests.size();
        return r;
    }

    plain& queued(instance_pool* p)
    {
        auto& r = make(p);
        REQUIRE_FALSE(gate.offer(r, true, now));
        return r;
    }

    plain& run() { return queued(&pool); }

    admission::time_point now{1h};
    std::deque<plain> requests;
    instance_pool pool{3};
    admission gate{{.max_in_flight = 100, .max_bytes_in_flight = 100, .max_queued = 100}};
};

TEST_SUITE_BEGIN("instance_pool");

TEST_CASE("instances are used in turn")
{
    instance_pool p(3);
    for (std::uint32_t i = 0; i < 3; ++i)
        p.add(i);
    CHECK(p.take() == 0);
    CHECK(p.take() == 1);
    p.add(0);
    CHECK(p.take() == 2);
    CHECK(p.take() == 0);
    CHECK_FALSE(p.has_free());
    p.add(1);
    p.clear();
    CHECK(p.free() == 0);
}

TEST_CASE_FIXTURE(fixture, "a run waits for an instance and delays no other request")
{
    auto& a = run();
    auto& other = queued(nullptr);
    CHECK(gate.queued() == 2);
    CHECK(gate.next() == &other);
    CHECK(gate.next() == nullptr);
    gate.add_instance(pool, 0);
    CHECK(gate.next() == &a);
    CHECK(a.instance == 0);
    gate.finished(other);
    gate.finished(a);
    CHECK(pool.free() == 1);
    CHECK(gate.empty());
}

TEST_CASE_FIXTURE(fixture, "an instance that becomes free goes to the run that has waited longest")
{
    gate.add_instance(pool, 0);
    auto& a = run();
    auto& b = run();
    auto& c = run();
    CHECK(gate.next() == &a);
    CHECK(gate.next() == nullptr);
    auto& later = queued(nullptr);
    gate.finished(a);
    CHECK(gate.next() == &b);
    CHECK(gate.next() == &later);
    gate.finished(b);
    gate.finished(later);
    CHECK(gate.next() == &c);
    gate.finished(c);
}

TEST_CASE_FIXTURE(fixture, "removing a run that waits leaves no trace, and one that has an instance gives it back")
{
    gate.add_instance(pool, 0);
    auto& a = run();
    auto& b = run();
    auto& c = run();
    gate.remove(b);
    CHECK(gate.queued() == 2);
    gate.remove(a);
    CHECK(gate.next() == &c);
    gate.finished(c);
    CHECK(pool.free() == 1);
}

TEST_CASE_FIXTURE(fixture, "a deadline ends the wait for an instance")
{
    auto& a = make(&pool);
    a.options.deadline = now + 1s;
    REQUIRE_FALSE(gate.offer(a, true, now));
    CHECK(gate.first_deadline() == now + 1s);
    CHECK(gate.expired(now + 2s) == &a);
    CHECK(gate.empty());
    gate.add_instance(pool, 0);
    CHECK(gate.next() == nullptr);
    CHECK(pool.free() == 1);
}

TEST_CASE_FIXTURE(fixture, "a run that must not wait is refused without a free instance")
{
    auto& a = make(&pool);
    a.options.when_full = when_full::fail;
    CHECK(gate.offer(a, true, now) == errc::queue_full);
    gate.add_instance(pool, 0);
    CHECK_FALSE(gate.offer(a, true, now));
}

TEST_CASE_FIXTURE(fixture, "without a context, runs wait in the order of their arrival")
{
    gate.add_instance(pool, 0);
    gate.add_instance(pool, 1);
    auto& a = run();
    auto& other = queued(nullptr);
    auto& b = run();
    auto& c = run();
    gate.forget_instances();
    CHECK(pool.free() == 0);
    CHECK(gate.next() == &other);
    CHECK(gate.next() == nullptr);
    gate.finished(other);
    for (plain* expected : {&a, &b, &c}) {
        gate.add_instance(pool, 2);
        CHECK(gate.next() == expected);
    }
    for (plain* r : {&a, &b, &c})
        gate.finished(*r);
}

TEST_CASE_FIXTURE(fixture, "a run that is repeated waits for an instance again")
{
    gate.add_instance(pool, 0);
    auto& a = run();
    auto& b = run();
    CHECK(gate.next() == &a);
    gate.finished(a);
    gate.forget_instances();
    gate.put_back(a, suspicion::suspect);
    CHECK(gate.next() == nullptr);
    gate.add_instance(pool, 0);
    // It is a suspect.
    CHECK(gate.next() == &a);
    gate.finished(a);
    CHECK(gate.next() == &b);
    gate.finished(b);
}

TEST_CASE_FIXTURE(fixture, "a suspect gets the first instance, even if an earlier run waits for one")
{
    gate.add_instance(pool, 0);
    gate.add_instance(pool, 1);
    auto& a = run();
    auto& b = run();
    auto& c = run();
    CHECK(gate.next() == &a);
    CHECK(gate.next() == &b);
    gate.finished(a);
    CHECK(gate.next() == &c);
    gate.finished(c);
    gate.finished(b);
    gate.forget_instances();
    auto& d = run();
    gate.put_back(c, suspicion::suspect);
    gate.add_instance(pool, 0);
    CHECK(gate.next() == &c);
    // An instance that arrives while it is alone is for the next run, which waits all the same.
    gate.add_instance(pool, 1);
    CHECK(gate.next() == nullptr);
    gate.finished(c);
    CHECK(gate.next() == &d);
    gate.finished(d);
}

TEST_CASE("a run that waited for an instance does not overtake runs that wait for room on the device")
{
    admission gate{{.max_in_flight = 1, .max_bytes_in_flight = 100, .max_queued = 100}};
    instance_pool pool(2);
    gate.add_pool(pool);
    std::deque<plain> runs(3);
    gate.add_instance(pool, 0);
    gate.add_instance(pool, 1);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].pool = &pool;
        runs[i].sequence = i + 1;
        REQUIRE_FALSE(gate.offer(runs[i], true, admission::time_point{1h}));
    }
    CHECK(runs[2].parked);
    for (plain& r : runs) {
        CHECK(gate.next() == &r);
        CHECK(gate.next() == nullptr);
        gate.finished(r);
    }
    gate.remove_pool(pool);
}

/// Two plans with common states.
struct common_fixture : fixture {
    common_fixture()
    {
        gate.add_pool(a);
        gate.add_pool(b);
    }

    ~common_fixture()
    {
        while (gate.pop()) {
        }
        gate.remove_pool(a);
        gate.remove_pool(b);
    }

    detail::ordered_requests waiting;
    instance_pool a{2, &waiting};
    instance_pool b{2, &waiting};
};

TEST_CASE_FIXTURE(common_fixture, "a run of a plan with common states waits for earlier runs of the other plans")
{
    gate.add_instance(a, 0);
    gate.add_instance(b, 0);
    auto& a1 = queued(&a);
    auto& a2 = queued(&a);
    auto& b1 = queued(&b);
    CHECK(gate.next() == &a1);
    // There is an instance for it, but an earlier run has none.
    CHECK(b.has_free());
    CHECK(b1.parked);
    CHECK(gate.next() == nullptr);
    // Only the plan of the first one needs another instance.
    CHECK(a.is_short());
    CHECK_FALSE(b.is_short());
    // Other plans do not wait.
    gate.add_instance(pool, 0);
    auto& other = queued(&pool);
    CHECK(gate.next() == &other);
    gate.finished(a1);
    CHECK(gate.next() == &a2);
    CHECK(gate.next() == &b1);
    for (plain* r : {&other, &a2, &b1})
        gate.finished(*r);
}

TEST_CASE_FIXTURE(common_fixture, "a run that waits only for its turn goes on when the one before it is removed")
{
    gate.add_instance(b, 0);
    auto& a1 = queued(&a);
    auto& b1 = queued(&b);
    auto& a2 = queued(&a);
    CHECK(gate.next() == nullptr);
    SUBCASE("cancelled")
    {
        gate.remove(a1);
        CHECK(gate.next() == &b1);
        CHECK(gate.pop(a) == &a2);
    }
    SUBCASE("its plan leaves")
    {
        CHECK(gate.pop(a) == &a1);
        CHECK(gate.pop(a) == &a2);
        CHECK(gate.pop(a) == nullptr);
        CHECK(gate.next() == &b1);
    }
    gate.finished(b1);
}

TEST_CASE_FIXTURE(common_fixture, "a run that must not wait is refused while an earlier run of another plan waits")
{
    gate.add_instance(b, 0);
    auto& a1 = queued(&a);
    auto& b1 = make(&b);
    b1.options.when_full = when_full::fail;
    CHECK(gate.offer(b1, true, now) == errc::queue_full);
    gate.remove(a1);
    CHECK_FALSE(gate.offer(b1, true, now));
}

TEST_CASE_FIXTURE(common_fixture,
                  "without a context, runs of plans with common states wait in the order of their arrival")
{
    gate.add_instance(a, 0);
    gate.add_instance(b, 0);
    auto& a1 = queued(&a);
    auto& b1 = queued(&b);
    auto& a2 = queued(&a);
    auto& b2 = queued(&b);
    CHECK(gate.next() == &a1);
    gate.finished(a1);
    gate.put_back(a1, suspicion::suspect);
    gate.forget_instances();
    // The second plan is loaded first.
    gate.add_instance(b, 0);
    gate.add_instance(b, 1);
    CHECK(gate.next() == nullptr);
    gate.add_instance(a, 0);
    CHECK(gate.next() == &a1);
    CHECK(gate.next() == nullptr);
    gate.finished(a1);
    CHECK(gate.next() == &b1);
    CHECK(gate.next() == &a2);
    CHECK(gate.next() == &b2);
    for (plain* r : {&b1, &a2, &b2})
        gate.finished(*r);
    CHECK(gate.empty());
}

TEST_CASE("no instance is used twice or lost, whatever happens")
{
    std::minstd_rand random(7);
    for (int round = 0; round < 200; ++round) {
        fixture f;
        std::uint32_t made = 0;
        std::vector<plain*> started;
        std::vector<plain*> waiting;
        for (int step = 0; step < 60; ++step) {
            switch (random() % 6) {
            case 0:
                if (made < 3)
                    f.gate.add_instance(f.pool, made++);
                break;
            case 1: waiting.push_back(&f.run()); break;
            case 2: waiting.push_back(&f.queued(nullptr)); break;
            case 3:
                if (auto* r = f.gate.next()) {
                    started.push_back(static_cast<plain*>(r));
                    std::erase(waiting, r);
                }
                break;
            case 4:
                if (!started.empty()) {
                    const auto which = random() % started.size();
                    f.gate.finished(*started[which]);
                    started.erase(started.begin() + static_cast<std::ptrdiff_t>(which));
                }
                break;
            case 5:
                if (!waiting.empty()) {
                    const auto which = random() % waiting.size();
                    f.gate.remove(*waiting[which]);
                    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(which));
                }
                break;
            }
            std::vector<int> users(3);
            std::size_t in_use = 0;
            for (const plain* r : started)
                in_use += r->pool ? ++users[r->instance], 1u : 0u;
            for (const plain* r : waiting)
                in_use += r->pool && !r->parked ? ++users[r->instance], 1u : 0u;
            for (const int n : users)
                CHECK(n <= 1);
            CHECK(in_use + f.pool.free() == made);
            CHECK(f.gate.queued() == waiting.size());
        }
        for (plain* r : started)
            f.gate.finished(*r);
    }
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_instance_pool
