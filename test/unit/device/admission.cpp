#include "device/admission.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <vector>

namespace test_device_admission {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::admission;
using detail::suspicion;

struct plain final : detail::request {
    void post() override {}
    void destroy() noexcept override {}
};

struct fixture {
    explicit fixture(queue_limits limits = {.max_in_flight = 2, .max_bytes_in_flight = 100, .max_queued = 4})
        : gate(limits)
    {}

    plain& make(std::uint64_t bytes = 0)
    {
        auto& r = requests.emplace_back();
        r.bytes = bytes;
        return r;
    }

    plain& queued(std::uint64_t bytes = 0)
    {
        auto& r = make(bytes);
        REQUIRE_FALSE(gate.offer(r, true, now));
        return r;
    }

    ~fixture()
    {
        while (gate.pop()) {
        }
    }

    admission::time_point now{1h};
    std::deque<plain> requests;
    admission gate;
};

TEST_SUITE_BEGIN("admission");

TEST_CASE("requests start in FIFO order, up to max_in_flight")
{
    fixture f;
    auto& a = f.queued();
    auto& b = f.queued();
    auto& c = f.queued();
    CHECK(f.gate.next() == &a);
    CHECK(f.gate.next() == &b);
    CHECK(f.gate.next() == nullptr);
    CHECK(f.gate.in_flight() == 2);
    CHECK(f.gate.queued() == 1);
    f.gate.finished(a);
    CHECK(f.gate.next() == &c);
    f.gate.finished(b);
    f.gate.finished(c);
    CHECK(f.gate.empty());
}

TEST_CASE("max_bytes_in_flight bounds all transfers, except for one larger transfer at a time")
{
    fixture f({.max_in_flight = 5, .max_bytes_in_flight = 100, .max_queued = 9});
    auto& small = f.queued(60);
    auto& large = f.queued(500);
    auto& tiny = f.queued(1);
    auto& larger = f.queued(5000);
    auto& behind = f.queued(2);
    CHECK(f.gate.next() == &small);
    CHECK(f.gate.next() == &large);
    CHECK(f.gate.next() == &tiny);
    CHECK(f.gate.next() == nullptr);
    f.gate.finished(small);
    CHECK(f.gate.next() == nullptr);
    f.gate.finished(large);
    CHECK(f.gate.next() == &larger);
    CHECK(f.gate.next() == &behind);
    auto& forty = f.queued(40);
    auto& too_much = f.queued(58);
    CHECK(f.gate.next() == &forty);
    CHECK(f.gate.next() == nullptr);
    f.gate.finished(behind);
    CHECK(f.gate.next() == &too_much);
}

TEST_CASE("a when_full::fail request starts beside a transfer that is larger than the bound")
{
    fixture f;
    auto& large = f.queued(500);
    CHECK(f.gate.next() == &large);
    auto& impatient = f.make(10);
    impatient.options.when_full = when_full::fail;
    CHECK_FALSE(f.gate.offer(impatient, true, f.now));
    CHECK(f.gate.next() == &impatient);
}

TEST_CASE("the queue is bounded")
{
    fixture f;
    for (int i = 0; i < 4; ++i)
        f.queued();
    CHECK(f.gate.offer(f.make(), true, f.now) == errc::queue_full);
    CHECK(f.gate.queued() == 4);
}

TEST_CASE("a when_full::fail request is refused unless it can start at once")
{
    fixture f;
    auto& impatient = f.make();
    impatient.options.when_full = when_full::fail;
    CHECK(f.gate.offer(impatient, false, f.now) == errc::queue_full);
    CHECK_FALSE(f.gate.offer(impatient, true, f.now));
    CHECK(f.gate.next() == &impatient);
    f.queued();
    auto& behind = f.make();
    behind.options.when_full = when_full::fail;
    CHECK(f.gate.would_refuse(behind));
    CHECK(f.gate.offer(behind, true, f.now) == errc::queue_full);
    // The request is not refused once the earlier ones have been started.
    (void)f.gate.next();
    CHECK_FALSE(f.gate.would_refuse(behind));
    CHECK_FALSE(f.gate.would_refuse(f.make()));
}

TEST_CASE("a past deadline is refused, and a future deadline expires when it is reached")
{
    fixture f;
    auto& late = f.make();
    late.options.deadline = f.now;
    CHECK(f.gate.offer(late, true, f.now) == errc::deadline_exceeded);
    auto& second = f.make();
    second.options.deadline = f.now + 2s;
    auto& first = f.make();
    first.options.deadline = f.now + 1s;
    REQUIRE_FALSE(f.gate.offer(second, true, f.now));
    REQUIRE_FALSE(f.gate.offer(first, true, f.now));
    f.queued();
    CHECK(f.gate.first_deadline() == f.now + 1s);
    CHECK(f.gate.expired(f.now + 999ms) == nullptr);
    CHECK(f.gate.expired(f.now + 2s) == &first);
    CHECK(f.gate.expired(f.now + 2s) == &second);
    CHECK(f.gate.expired(f.now + 2s) == nullptr);
    CHECK(f.gate.queued() == 1);
    CHECK(f.gate.first_deadline() == exec_options::no_deadline);
}

TEST_CASE("a removed request leaves no trace")
{
    fixture f;
    auto& a = f.queued();
    auto& b = f.make();
    b.options.deadline = f.now + 1s;
    REQUIRE_FALSE(f.gate.offer(b, true, f.now));
    auto& c = f.queued();
    f.gate.remove(b);
    CHECK(f.gate.expired(f.now + 2s) == nullptr);
    CHECK_FALSE(b.queued);
    CHECK(f.gate.next() == &a);
    CHECK(f.gate.next() == &c);
    CHECK(f.gate.next() == nullptr);
}

TEST_CASE("suspects start in their original order, one at a time, before all other requests")
{
    fixture f({.max_in_flight = 3, .max_bytes_in_flight = 100, .max_queued = 4});
    std::vector<plain*> all;
    for (std::uint64_t i = 1; i <= 4; ++i) {
        all.push_back(&f.queued(10));
        all.back()->sequence = i;
    }
    for (int i = 0; i < 3; ++i)
        CHECK(f.gate.next() == all[static_cast<std::size_t>(i)]);
    for (const std::size_t i : {std::size_t(1), std::size_t(2), std::size_t(0)}) {
        f.gate.finished(*all[i]);
        f.gate.put_back(*all[i], suspicion::suspect);
        CHECK(all[i]->queued);
        CHECK(f.gate.isolating());
    }
    CHECK(f.gate.in_flight() == 0);
    CHECK(f.gate.queued() == 4);
    CHECK(f.gate.offer(f.make(), true, f.now) == errc::queue_full);
    CHECK(f.gate.oldest() == all[3]);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(f.gate.next() == all[i]);
        CHECK_FALSE(all[i]->queued);
        CHECK_FALSE(f.gate.has_next());
        f.gate.finished(*all[i]);
        CHECK(f.gate.isolating() == (i < 2));
    }
    CHECK(f.gate.next() == all[3]);
    f.gate.finished(*all[3]);
    CHECK(f.gate.empty());
}

TEST_CASE("the prime suspect starts after the other suspects")
{
    fixture f({.max_in_flight = 3, .max_bytes_in_flight = 100, .max_queued = 4});
    std::vector<plain*> all;
    for (std::uint64_t i = 1; i <= 3; ++i) {
        all.push_back(&f.queued());
        all.back()->sequence = i;
        REQUIRE(f.gate.next() == all.back());
    }
    for (std::size_t i = 0; i < 3; ++i) {
        f.gate.finished(*all[i]);
        f.gate.put_back(*all[i], i == 0 ? suspicion::prime : suspicion::suspect);
    }
    for (const std::size_t i : {std::size_t(1), std::size_t(2), std::size_t(0)}) {
        CHECK(f.gate.next() == all[i]);
        f.gate.finished(*all[i]);
    }
    CHECK_FALSE(f.gate.isolating());
}

TEST_CASE("other suspects, and then all requests, start beside a suspect that takes too long")
{
    fixture f({.max_in_flight = 4, .max_bytes_in_flight = 100, .max_queued = 4});
    auto& a = f.queued();
    auto& b = f.queued();
    auto& c = f.queued();
    b.sequence = 1;
    c.sequence = 2;
    for (plain* r : {&a, &b}) {
        REQUIRE(f.gate.next() == r);
        f.gate.finished(*r);
    }
    f.gate.put_back(a, suspicion::suspect);
    f.gate.put_back(b, suspicion::suspect);
    CHECK(f.gate.next() == &a);
    CHECK(f.gate.occupied());
    f.gate.stop_isolating(a);
    CHECK_FALSE(f.gate.occupied());
    CHECK(f.gate.isolating());
    CHECK(f.gate.next() == &b);
    CHECK(f.gate.occupied());
    CHECK(f.gate.next() == nullptr);
    f.gate.finished(b);
    CHECK_FALSE(f.gate.isolating());
    CHECK(f.gate.next() == &c);
    f.gate.finished(a);
    f.gate.finished(c);
    CHECK(f.gate.empty());
    // It counts as any other request from now on.
    REQUIRE_FALSE(f.gate.offer(a, true, f.now));
    CHECK(f.gate.next() == &a);
    f.gate.finished(a);
    f.gate.put_back(a, suspicion::suspect);
    CHECK(f.gate.next() == &a);
    CHECK(f.gate.occupied());
    f.gate.finished(a);
}

TEST_CASE("while there are suspects, a request that does not want to wait is refused")
{
    fixture f;
    auto& a = f.queued();
    REQUIRE(f.gate.next() == &a);
    f.gate.finished(a);
    f.gate.put_back(a, suspicion::suspect);
    REQUIRE(f.gate.next() == &a);
    auto& b = f.make();
    b.options.when_full = when_full::fail;
    CHECK(f.gate.offer(b, true, f.now) == errc::queue_full);
    f.gate.finished(a);
    CHECK_FALSE(f.gate.offer(b, true, f.now));
    f.gate.remove(b);
}

TEST_CASE("all requests can be popped while there are suspects")
{
    fixture f;
    auto& a = f.queued();
    auto& b = f.queued();
    auto& c = f.queued();
    b.sequence = 1;
    c.sequence = 2;
    REQUIRE(f.gate.next() == &a);
    REQUIRE(f.gate.next() == &b);
    f.gate.finished(b);
    f.gate.put_back(b, suspicion::suspect);
    CHECK(f.gate.pop() == &b);
    CHECK_FALSE(f.gate.isolating());
    CHECK(f.gate.pop() == &c);
    CHECK(f.gate.pop() == nullptr);
    f.gate.finished(a);
}

TEST_CASE("a request put back can be removed, and expires at its deadline")
{
    fixture f;
    auto& a = f.queued();
    auto& b = f.make();
    b.sequence = 1;
    b.options.deadline = f.now + 1s;
    REQUIRE_FALSE(f.gate.offer(b, true, f.now));
    for (plain* r : {&a, &b}) {
        REQUIRE(f.gate.next() == r);
        f.gate.finished(*r);
    }
    f.gate.put_back(b, suspicion::suspect);
    f.gate.put_back(a, suspicion::suspect);
    CHECK(f.gate.first_deadline() == f.now + 1s);
    CHECK(f.gate.expired(f.now + 1s) == &b);
    CHECK(f.gate.front() == &a);
    f.gate.remove(a);
    CHECK_FALSE(a.queued);
    CHECK(f.gate.empty());
    CHECK_FALSE(f.gate.isolating());
}

TEST_CASE("the destructor destroys each remaining request once")
{
    struct counted final : detail::request {
        void post() override {}
        void destroy() noexcept override { ++destroyed; }
        int destroyed = 0;
    };
    counted a;
    counted b;
    {
        admission gate({});
        REQUIRE_FALSE(gate.offer(a, true, {}));
        REQUIRE(gate.next() == &a);
        gate.finished(a);
        gate.put_back(a, suspicion::suspect);
        REQUIRE_FALSE(gate.offer(b, true, {}));
    }
    CHECK(a.destroyed == 1);
    CHECK(b.destroyed == 1);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_admission
