#include "device/overtaking.hpp"

#include "device/admission.hpp"
#include "support/dense.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas/level3_lists.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

namespace test_device_overtaking {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::admission;

/// Elements of a buffer, as the admission queue sees them.
ref<float> elements(std::uint32_t buffer, std::uint64_t begin, std::uint64_t end)
{
    return ref<float>::from_raw(any_ref{7, 1, buffer, 1, begin, end - begin, dtype::f32});
}

/// A copy between two buffers, or an upload if it moves bytes.
struct copying final : detail::request {
    copying(ref<float> from, ref<float> to, std::uint64_t moved = 0) : op{from, to}
    {
        bytes = moved;
        bound[0] = {.info = &info_of<memory::copy<float>>(), .op = &op};
        ops = bound;
    }

    void post() override {}
    void destroy() noexcept override {}

    memory::copy<float> op;
    std::array<bound_op, 1> bound;
};

struct other_op final : detail::request {
    explicit other_op(const op_info& info, const void* op)
    {
        bound[0] = {.info = &info, .op = op};
        ops = bound;
    }

    void post() override {}
    void destroy() noexcept override {}

    std::array<bound_op, 1> bound;
};

constexpr admission::time_point now{1h};

void drain(admission& gate)
{
    while (gate.pop()) {
    }
    gate.forget_in_flight();
}

} // namespace

TEST_SUITE_BEGIN("overtaking");

TEST_CASE("two requests conflict when one writes elements that the other uses")
{
    const copying a(elements(0, 0, 10), elements(1, 0, 10));
    CHECK(detail::conflict(a, a));
    CHECK_FALSE(detail::conflict(a, copying(elements(0, 0, 10), elements(2, 0, 10))));
    CHECK(detail::conflict(a, copying(elements(1, 9, 19), elements(2, 0, 10))));
    CHECK_FALSE(detail::conflict(a, copying(elements(1, 10, 20), elements(2, 0, 10))));
    CHECK(detail::conflict(a, copying(elements(3, 0, 1), elements(0, 5, 6))));
    CHECK(detail::conflict(copying(elements(3, 0, 1), elements(0, 5, 6)), a));
    CHECK_FALSE(detail::conflict(a, copying(elements(3, 0, 1), elements(0, 10, 11))));
}

TEST_CASE("operands without a buffer conflict with nothing")
{
    using list = blas::gemm_batched<float>;
    const auto product = [](std::uint32_t from, std::uint32_t to) {
        list op{.m = 2, .n = 2, .k = 2};
        op.add(elements(from, 0, 4), elements(from, 0, 4), elements(to, 0, 4));
        return op;
    };
    const list first = product(1, 2), same = product(1, 3), reader = product(2, 4), writer = product(5, 1);
    const auto conflicts = [](const list& a, const list& b) {
        const other_op x(info_of<list>(), &a), y(info_of<list>(), &b);
        return detail::conflict(x, y);
    };
    CHECK_FALSE(conflicts(first, same));
    CHECK(conflicts(first, first));
    CHECK(conflicts(first, reader));
    CHECK(conflicts(reader, first));
    CHECK(conflicts(first, writer));
    list longer = product(6, 7);
    longer.add(elements(8, 0, 4), elements(2, 0, 4), elements(9, 0, 4));
    CHECK(conflicts(first, longer));
    CHECK(conflicts(longer, first));
    CHECK_FALSE(conflicts(same, longer));
}

TEST_CASE("only ops that use nothing but their operands may overtake")
{
    CHECK(detail::may_overtake(copying(elements(0, 0, 1), elements(1, 0, 1))));
    CHECK_FALSE(detail::may_overtake(copying(elements(0, 0, 1), elements(1, 0, 1), 4)));
    const detail::allocate_op allocation{4, dtype::f32, memory_kind::device};
    CHECK_FALSE(detail::may_overtake(other_op(info_of<detail::allocate_op>(), &allocation)));
    const memory::trim trim{};
    CHECK_FALSE(detail::may_overtake(other_op(info_of<memory::trim>(), &trim)));
    op_info users = info_of<memory::copy<float>>();
    users.pure = false;
    const memory::copy<float> copy{elements(0, 0, 1), elements(1, 0, 1)};
    CHECK_FALSE(detail::may_overtake(other_op(users, &copy)));
}

TEST_CASE("an op that shares no operand with a waiting transfer overtakes it")
{
    admission gate({.max_in_flight = 3, .max_bytes_in_flight = 100, .max_queued = 100});
    copying running(elements(9, 0, 1), elements(8, 0, 1), 80);
    copying waiting(elements(9, 0, 1), elements(0, 0, 10), 30);
    copying dependent(elements(0, 5, 10), elements(2, 0, 5));
    copying behind_dependent(elements(2, 0, 5), elements(3, 0, 5));
    copying free(elements(4, 0, 5), elements(5, 0, 5));
    copying transfer(elements(4, 0, 5), elements(6, 0, 5), 1);
    for (detail::request* r : {&running, &waiting, &dependent, &behind_dependent, &free, &transfer})
        REQUIRE_FALSE(gate.offer(*r, true, now));
    CHECK(gate.next() == &running);
    CHECK_FALSE(gate.has_next(admission::order::strict));
    CHECK(gate.next(admission::order::strict) == nullptr);
    CHECK(gate.has_next());
    CHECK(gate.next() == &free);
    CHECK_FALSE(gate.has_next());
    gate.finished(running);
    CHECK(gate.next() == &waiting);
    CHECK(gate.next() == &dependent);
    CHECK(gate.next() == nullptr);
    gate.finished(free);
    CHECK(gate.next() == &behind_dependent);
    drain(gate);
}

TEST_CASE("a when_full::fail request is accepted when it can overtake all waiting requests")
{
    admission gate({.max_in_flight = 3, .max_bytes_in_flight = 100, .max_queued = 100});
    copying running(elements(9, 0, 1), elements(8, 0, 1), 80);
    copying waiting(elements(9, 0, 1), elements(0, 0, 10), 30);
    REQUIRE_FALSE(gate.offer(running, true, now));
    REQUIRE_FALSE(gate.offer(waiting, true, now));
    CHECK(gate.next() == &running);
    copying dependent(elements(0, 0, 1), elements(1, 0, 1));
    copying free(elements(2, 0, 1), elements(3, 0, 1));
    copying late(elements(4, 0, 1), elements(5, 0, 1));
    for (copying* r : {&dependent, &free, &late})
        r->options.when_full = when_full::fail;
    CHECK(gate.offer(dependent, true, now) == errc::queue_full);
    CHECK(gate.offer(free, false, now) == errc::queue_full);
    CHECK_FALSE(gate.offer(free, true, now));
    CHECK(gate.next() == &free);
    CHECK_FALSE(gate.offer(late, true, now));
    CHECK(gate.next() == &late);
    // Now max_in_flight is reached.
    copying one_more(elements(6, 0, 1), elements(7, 0, 1));
    one_more.options.when_full = when_full::fail;
    CHECK(gate.offer(one_more, true, now) == errc::queue_full);
    drain(gate);
}

TEST_CASE("on random histories conflicting requests start in order, the bounds hold, and every request starts")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const auto pick_elements = [&] {
        const auto begin = pick(8);
        return elements(static_cast<std::uint32_t>(pick(6)), begin, begin + 1 + pick(8 - begin));
    };
    std::size_t overtaken = 0;
    for (int history = 0; history < 300; ++history) {
        constexpr std::uint64_t most_bytes = 100;
        const std::uint64_t most_in_flight = 1 + pick(6);
        admission gate({.max_in_flight = most_in_flight, .max_bytes_in_flight = most_bytes, .max_queued = 1000});
        std::vector<std::unique_ptr<copying>> all;
        std::vector<detail::request*> started;
        std::vector<detail::request*> in_flight;
        const std::size_t count = 10 + pick(60);
        const auto start = [&] {
            detail::request* r = gate.next();
            if (!r)
                return false;
            started.push_back(r);
            in_flight.push_back(r);
            std::uint64_t bytes = 0;
            std::size_t oversize = 0;
            for (const auto* f : in_flight)
                f->bytes > most_bytes ? void(++oversize) : void(bytes += f->bytes);
            CHECK(in_flight.size() <= most_in_flight);
            CHECK(bytes <= most_bytes);
            CHECK(oversize <= 1);
            return true;
        };
        const auto finish = [&] {
            if (in_flight.empty())
                return false;
            const auto at = in_flight.begin() + static_cast<std::ptrdiff_t>(pick(in_flight.size()));
            detail::request* r = *at;
            in_flight.erase(at);
            gate.finished(*r);
            return true;
        };
        while (all.size() < count) {
            const std::uint64_t bytes = std::array<std::uint64_t, 5>{0, 0, 0, 1 + pick(90), 101 + pick(90)}[pick(5)];
            auto& r = *all.emplace_back(std::make_unique<copying>(pick_elements(), pick_elements(), bytes));
            r.sequence = all.size();
            if (pick(4) == 0)
                r.options.when_full = when_full::fail;
            if (gate.offer(r, true, now))
                all.pop_back();
            else if (r.options.when_full == when_full::fail)
                CHECK((start() && started.back() == &r));
            for (std::size_t n = pick(3); n > 0; --n)
                pick(2) == 0 ? start() : finish();
        }
        // Everything in flight ends eventually.
        do {
            while (start()) {
            }
        } while (finish());
        CHECK(gate.empty());
        REQUIRE(started.size() == all.size());
        std::vector<std::size_t> position(all.size() + 1);
        for (std::size_t i = 0; i < started.size(); ++i)
            position[started[i]->sequence] = i;
        for (std::size_t a = 0; a < all.size(); ++a)
            for (std::size_t b = a + 1; b < all.size(); ++b) {
                if (position[a + 1] < position[b + 1])
                    continue;
                ++overtaken;
                if (detail::conflict(*all[a], *all[b]))
                    FAIL("request ", b, " overtook request ", a);
            }
    }
    CHECK(overtaken > 0);
}

TEST_SUITE_END();

} // namespace test_device_overtaking
