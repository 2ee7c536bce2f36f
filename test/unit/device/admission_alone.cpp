#include "device/admission.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>

namespace test_device_admission_alone {

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

    plain& alone()
    {
        auto& r = make(&pool);
        REQUIRE_FALSE(gate.offer_alone(r, now));
        return r;
    }

    admission::time_point now{1h};
    std::deque<plain> requests;
    instance_pool pool{3};
    admission gate{{.max_in_flight = 100, .max_bytes_in_flight = 100, .max_queued = 3}};
};

TEST_SUITE_BEGIN("admission");

TEST_CASE_FIXTURE(fixture, "a run that must be alone waits for those in flight, and others wait for it")
{
    gate.add_instance(pool, 0);
    gate.add_instance(pool, 1);
    auto& before = queued(nullptr);
    CHECK(gate.next() == &before);
    auto& part = alone();
    auto& after = queued(nullptr);
    CHECK(gate.isolating());
    CHECK(gate.next() == nullptr);
    gate.finished(before);
    CHECK(gate.next() == &part);
    CHECK(gate.next() == nullptr);
    gate.finished(part);
    CHECK_FALSE(gate.isolating());
    CHECK(gate.next() == &after);
    gate.finished(after);
}

TEST_CASE_FIXTURE(fixture, "it gets an instance, although runs that start after it had all of them")
{
    gate.add_instance(pool, 0);
    auto& waiting = queued(&pool);
    CHECK_FALSE(pool.has_free());
    auto& part = alone();
    CHECK(gate.next() == &part);
    gate.finished(part);
    CHECK(gate.next() == &waiting);
    gate.finished(waiting);
    CHECK(gate.queued() == 0);
}

TEST_CASE_FIXTURE(fixture, "also from a run that has waited for an instance before")
{
    gate.add_instance(pool, 0);
    auto& first = queued(&pool);
    auto& second = queued(&pool);
    CHECK(gate.next() == &first);
    gate.finished(first);
    // The second one has the instance, and has not been started.
    CHECK_FALSE(pool.has_free());
    auto& part = alone();
    CHECK(gate.next() == &part);
    gate.finished(part);
    CHECK(gate.next() == &second);
    gate.finished(second);
}

TEST_CASE_FIXTURE(fixture, "if all instances are in flight, it gets the first that is free")
{
    gate.add_instance(pool, 0);
    auto& running = queued(&pool);
    CHECK(gate.next() == &running);
    auto& waiting = queued(&pool);
    auto& part = alone();
    CHECK(gate.next() == nullptr);
    gate.finished(running);
    CHECK(gate.next() == &part);
    gate.finished(part);
    CHECK(gate.next() == &waiting);
    gate.finished(waiting);
}

TEST_CASE_FIXTURE(fixture, "it is accepted by a full queue, but not after its deadline")
{
    for (int i = 0; i < 3; ++i)
        queued(nullptr);
    auto& refused = make(nullptr);
    CHECK(gate.offer(refused, true, now) == errc::queue_full);
    alone();
    auto& late = make(&pool);
    late.options.deadline = now;
    CHECK(gate.offer_alone(late, now) == errc::deadline_exceeded);
}

TEST_CASE_FIXTURE(fixture, "suspects that have waited too long start beside others")
{
    gate.add_instance(pool, 0);
    auto& slow = queued(nullptr);
    CHECK(gate.next() == &slow);
    auto& ready = alone();
    auto& parked = alone();
    auto& other = queued(nullptr);
    CHECK(gate.next() == nullptr);
    gate.stop_isolating_waiting();
    CHECK_FALSE(gate.isolating());
    CHECK(ready.suspicion == suspicion::none);
    CHECK(parked.suspicion == suspicion::none);
    CHECK(gate.next() == &ready);
    CHECK(gate.next() == &other);
    gate.finished(ready);
    CHECK(gate.next() == &parked);
    for (plain* r : {&slow, &other, &parked})
        gate.finished(*r);
    CHECK(gate.empty());
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_admission_alone
