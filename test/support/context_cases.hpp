#ifndef COACCEL_TEST_SUPPORT_CONTEXT_CASES_HPP
#define COACCEL_TEST_SUPPORT_CONTEXT_CASES_HPP

#include "support/context_driver.hpp"

#include <coaccel/ops/blas.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace test {

/// The contexts for the cases below. Each program that includes them must define this function.
std::vector<context_setting> contexts_under_test();

/// Calls `test` with a context_world of each setting.
template <class Test>
void for_each_context(Test test, bool concurrent_only = false)
{
    for (const auto& s : contexts_under_test()) {
        if (concurrent_only && !s.concurrent)
            continue;
        CAPTURE(s.name);
        const auto world = s.make();
        test(*world);
    }
}

} // namespace test

// One conformance suite for every backend, completion strategy and lane policy. Must be included in only one source
// file of a program.
namespace {

using namespace coaccel;
using detail::clock;
using detail::next_turn;
using test::context_driver;
using test::context_world;
using test::exec;
using test::for_each_context;
using test::hold;
using test::hold_lane;
using test::manual;

TEST_SUITE_BEGIN("engine");

TEST_CASE("an op ends once, with its reply")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(5);
        exec<memory::fill<float>> fill(memory::fill<float>{x, 3.0f}, exec_options{});
        exec<blas::dot<float>> dot(blas::dot<float>{x, x, 5}, exec_options{});
        d.submit(fill);
        d.submit(dot);
        d.run_until([&] { return d.has_ended(fill) && d.has_ended(dot); });
        CHECK_FALSE(d.outcome(fill));
        CHECK_FALSE(d.outcome(dot));
        dot.ec = {};
        CHECK(std::get<1>(dot.take()) == 45.0f);
        CHECK(d.context->turn(clock::now()).when == next_turn::kind::idle);
    });
}

TEST_CASE("what was written is read, whatever its size")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        for (const std::size_t n : {1u, 1000u, 20'001u, 700'003u}) {
            std::vector<float> data(n);
            std::iota(data.begin(), data.end(), 1.0f);
            const auto x = d.floats(n);
            d.write(x, data);
            CHECK(d.read(x) == data);
            d.context->release(x.raw());
        }
    });
}

// A graph of random ops, and the contents of the buffers after a sequential run.
class random_graph {
public:
    static constexpr std::size_t buffers = 6;
    static constexpr std::size_t length = 64;

    random_graph(context_driver& d, std::uint32_t seed) : random_(seed)
    {
        for (std::size_t i = 0; i < buffers; ++i)
            device.push_back(d.floats(length));
        for (std::size_t i = 0; i < buffers; ++i)
            fill(i, static_cast<float>(i), {});
    }

    /// With `any_options`, the ops have random priorities, and some have a lane of the caller.
    void add(int count, bool any_options)
    {
        for (int n = 0; n < count; ++n) {
            const auto from = pick(buffers);
            const auto to = (from + 1 + pick(buffers - 1)) % buffers;
            exec_options how;
            if (any_options)
                how.priority = static_cast<priority>(pick(3));
            if (any_options && pick(4) == 0)
                how.lane = static_cast<int>(pick(4));
            switch (pick(4)) {
            case 0: fill(to, static_cast<float>(pick(7)), how); break;
            case 1:
                model[to] = model[from];
                add(memory::copy<float>{device[from], device[to]}, how);
                break;
            case 2: {
                // A part of one buffer to another part of it.
                const auto size = 1 + pick(length / 2);
                const auto begin = pick(length / 2 - size + 1);
                const auto end = length / 2 + pick(length / 2 - size + 1);
                std::copy_n(model[to].begin() + static_cast<std::ptrdiff_t>(begin), size,
                            model[to].begin() + static_cast<std::ptrdiff_t>(end));
                add(memory::copy<float>{device[to].subspan(begin, size), device[to].subspan(end, size)}, how);
                break;
            }
            default:
                for (std::size_t i = 0; i < length; ++i)
                    model[to][i] += 0.5f * model[from][i];
                add(blas::axpy<float>{.x = device[from], .y = device[to], .n = length, .alpha = 0.5f}, how);
            }
        }
    }

    std::vector<ref<float>> device;
    std::vector<std::vector<float>> model = std::vector(buffers, std::vector<float>(length, 0.0f));
    std::vector<std::shared_ptr<detail::request>> all;

private:
    std::size_t pick(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

    void fill(std::size_t to, float value, exec_options how)
    {
        model[to].assign(length, value);
        add(memory::fill<float>{device[to], value}, how);
    }

    template <class Op>
    void add(const Op& op, exec_options how)
    {
        all.push_back(std::make_shared<exec<Op>>(op, how));
    }

    std::mt19937 random_;
};

TEST_CASE("random op graphs give what running them one after another gives")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        for (const bool any_options : {true, false}) {
            CAPTURE(any_options);
            random_graph g(d, 20261);
            g.add(200, any_options);
            for (std::size_t i = 0; i < g.all.size(); ++i) {
                d.submit(*g.all[i]);
                // Some predecessors have ended, and are known to have.
                if (i % 16 == 0)
                    (void)d.context->turn(clock::now());
            }
            d.run_until([&] { return d.ended.size() == g.all.size(); });
            for (auto& r : g.all)
                CHECK_FALSE(d.outcome(*r));
            d.ended.clear();
            for (std::size_t i = 0; i < g.buffers; ++i)
                CHECK(d.read(g.device[i]) == g.model[i]);
        }
    });
}

TEST_CASE("a short op ends while a long one runs on another lane")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(4);
            const auto y = d.floats(4);
            test::gate gate;
            hold<inout<float>> longer(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
            longer.options.lane = 0;
            exec_options other;
            other.lane = 1;
            exec<memory::fill<float>> shorter(memory::fill<float>{y, 1.0f}, other);
            d.submit(longer);
            gate.wait_for(1);
            d.submit(shorter);
            d.run_until([&] { return d.has_ended(shorter); });
            CHECK_FALSE(d.has_ended(longer));
            gate.open();
            d.run_until([&] { return d.has_ended(longer); });
            CHECK_FALSE(d.outcome(longer));
        },
        true);
}

TEST_CASE("a fault ends every outstanding op once, and only then the context")
{
    for_each_context([](context_world& w) {
        if (!w.can_poison())
            return;
        context_driver d(w);
        const auto x = d.floats(4);
        std::vector<std::unique_ptr<exec<memory::fill<float>>>> all;
        for (int i = 0; i < 40; ++i)
            all.push_back(std::make_unique<exec<memory::fill<float>>>(memory::fill<float>{x, 1.0f}, exec_options{}));
        for (int i = 0; i < 2; ++i)
            d.run(*all[static_cast<std::size_t>(i)]);
        w.poison();
        for (std::size_t i = 2; i < all.size(); ++i)
            d.submit(*all[i]);
        d.run_until([&] { return d.losses > 0; });
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i < 2)
                CHECK_FALSE(d.outcome(*all[i]));
            else
                CHECK(d.outcome(*all[i]) == errc::context_lost);
        }
        CHECK(d.losses == 1);
        CHECK(d.reason == fault::context_lost);
        CHECK_FALSE(d.context->accepting());
        CHECK(d.context->turn(clock::now()).when == next_turn::kind::idle);
        CHECK(d.losses == 1);
        exec<memory::fill<float>> late(memory::fill<float>{x, 1.0f}, exec_options{});
        d.submit(late);
        CHECK(d.outcome(late) == errc::context_lost);
        d.context->release(x.raw());
    });
}

TEST_CASE("memory goes back after the last op that uses it")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(1024);
            const auto y = d.floats(1024);
            test::gate first;
            test::gate second;
            hold<in<float>> a(hold_lane{&w, first}, std::tuple(in<float>(x)));
            hold<in<float>> b(hold_lane{&w, second}, std::tuple(in<float>(x)));
            a.options.lane = 0;
            b.options.lane = 1;
            d.submit(a);
            d.submit(b);
            first.wait_for(1);
            second.wait_for(1);
            const auto used = d.context->memory().used;
            d.context->release(x.raw());
            CHECK(d.context->live_buffers() == 1);
            CHECK(d.context->memory().used == used);
            exec<memory::fill<float>> late(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(late);
            CHECK(d.outcome(late) == errc::released_ref);
            first.open();
            d.run_until([&] { return d.has_ended(a); });
            CHECK((w.frees_in_stream_order || d.context->memory().used == used));
            second.open();
            d.run_until([&] { return d.has_ended(b) && d.context->memory().used < used; });
            d.context->release(y.raw());
            CHECK(d.context->memory().used == 0);
        },
        true);
}

TEST_CASE("an allocation waits for memory that was released and is still in use, and those behind it wait too")
{
    for (const bool both_lanes : {false, true})
        for_each_context(
            [&](context_world& w) {
                CAPTURE(both_lanes);
                if (!w.limit_memory(8192))
                    return;
                context_driver d(w);
                const auto x = d.floats(1024);
                test::gate first;
                test::gate second;
                hold<in<float>> a(hold_lane{&w, first}, std::tuple(in<float>(x)));
                hold<in<float>> b(hold_lane{&w, second}, std::tuple(in<float>(x)));
                a.options.lane = 0;
                b.options.lane = 1;
                d.submit(a);
                first.wait_for(1);
                if (both_lanes) {
                    d.submit(b);
                    second.wait_for(1);
                }
                d.context->release(x.raw());
                test::allocate_request large(1536);
                test::allocate_request small(1024);
                d.submit(large);
                d.submit(small);
                if (both_lanes || !w.frees_in_stream_order) {
                    (void)d.context->turn(clock::now());
                    CHECK_FALSE(d.has_ended(large));
                    // There is room for it, but it must not overtake the large one.
                    CHECK_FALSE(d.has_ended(small));
                }
                first.open();
                d.run_until([&] { return d.has_ended(a); });
                second.open();
                d.run_until([&] { return d.has_ended(large) && d.has_ended(small); });
                CHECK_FALSE(d.outcome(large));
                CHECK(d.outcome(small) == errc::out_of_memory);
                d.run_until([&] { return !both_lanes || d.has_ended(b); });
                d.context->release(large.made.ref);
                d.ended.erase(&small);
                CHECK_FALSE(d.outcome_of(small));
                d.context->release(small.made.ref);
            },
            true);
}

TEST_CASE("an allocation larger than all memory is refused at once, and others do not wait behind it")
{
    for_each_context(
        [](context_world& w) {
            if (!w.limit_memory(8192))
                return;
            context_driver d(w);
            const auto x = d.floats(256);
            test::gate gate;
            hold<in<float>> held(hold_lane{&w, gate}, std::tuple(in<float>(x)));
            d.submit(held);
            gate.wait_for(1);
            d.context->release(x.raw());
            test::allocate_request impossible(4096);
            test::allocate_request small(256);
            d.submit(impossible);
            d.submit(small);
            d.run_until([&] { return d.has_ended(impossible) && d.has_ended(small); });
            CHECK(d.outcome(impossible) == errc::out_of_memory);
            CHECK_FALSE(d.outcome(small));
            CHECK_FALSE(d.has_ended(held));
            gate.open();
            d.run_until([&] { return d.has_ended(held); });
            d.context->release(small.made.ref);
        },
        true);
}

TEST_CASE("an allocation whose caller has given up does not keep others waiting")
{
    for_each_context(
        [](context_world& w) {
            if (!w.limit_memory(8192))
                return;
            context_driver d(w);
            const auto x = d.floats(1024);
            test::gate gate;
            hold<in<float>> a(hold_lane{&w, gate}, std::tuple(in<float>(x)));
            hold<in<float>> b(hold_lane{&w, gate}, std::tuple(in<float>(x)));
            a.options.lane = 0;
            b.options.lane = 1;
            d.submit(a);
            d.submit(b);
            gate.wait_for(2);
            // Two lanes use it, so it stays in use.
            d.context->release(x.raw());
            test::allocate_request large(1536);
            test::allocate_request small(256);
            d.submit(large);
            d.submit(small);
            (void)d.context->turn(clock::now());
            CHECK_FALSE(d.has_ended(large));
            CHECK_FALSE(d.has_ended(small));
            large.given_up = coaccel::detail::given_up::expired;
            d.run_until([&] { return d.has_ended(large) && d.has_ended(small); });
            CHECK(d.outcome(large) == errc::deadline_exceeded);
            CHECK_FALSE(d.outcome(small));
            CHECK_FALSE(d.has_ended(a));
            gate.open();
            d.run_until([&] { return d.has_ended(a) && d.has_ended(b); });
            d.context->release(small.made.ref);
        },
        true);
}

TEST_CASE("bad refs are typed errors and start nothing")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(8);
        auto outcome_of = [&](ref<float> target) {
            exec<memory::fill<float>> r(memory::fill<float>{target, 1.0f}, exec_options{});
            d.submit(r);
            const auto ec = d.outcome(r);
            d.ended.erase(&r);
            return ec;
        };
        auto changed = [&](auto change) {
            any_ref raw = x.raw();
            change(raw);
            return ref<float>::from_raw(raw);
        };
        CHECK(outcome_of(changed([](any_ref& r) { r.device = 8; })) == errc::wrong_device);
        CHECK(outcome_of(changed([](any_ref& r) { r.generation = 2; })) == errc::stale_ref);
        CHECK(outcome_of(changed([](any_ref& r) { r.version += 1; })) == errc::released_ref);
        CHECK(outcome_of(changed([](any_ref& r) { r.slot = 1000; })) == errc::out_of_bounds);
        CHECK(outcome_of(changed([](any_ref& r) { r.type = dtype::f64; })) == errc::wrong_dtype);
        CHECK(outcome_of(changed([](any_ref& r) { r.size = 9; })) == errc::out_of_bounds);
        CHECK(outcome_of(changed([](any_ref& r) { r.offset = ~0ull; })) == errc::out_of_bounds);
        CHECK(outcome_of(ref<float>()) == errc::invalid_argument);
        CHECK(outcome_of(x.subspan(4, 5)) == errc::out_of_bounds);
        exec<memory::copy<float>> twice(memory::copy<float>{x.subspan(0, 5), x.subspan(3, 5)}, exec_options{});
        d.submit(twice);
        CHECK(d.outcome(twice) == errc::overlap);
        exec_options nowhere;
        nowhere.lane = 99;
        exec<memory::fill<float>> lost(memory::fill<float>{x, 1.0f}, nowhere);
        d.submit(lost);
        CHECK(d.outcome(lost) == errc::invalid_argument);
    });
}

TEST_CASE("a seq is refused whole when one of its ops is bad")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto x = d.floats(4);
        exec<memory::fill<float>> clear(memory::fill<float>{x, 0.0f}, exec_options{});
        d.run(clear);
        using pair = manual<detail::seq_request<memory::fill<float>, memory::fill<float>>>;
        pair bad(seq(memory::fill<float>{x, 5.0f}, memory::fill<float>{ref<float>(), 1.0f}), exec_options{});
        d.submit(bad);
        CHECK(d.outcome(bad) == errc::invalid_argument);
        CHECK(d.read(x) == std::vector<float>(4, 0.0f));
        pair good(seq(memory::fill<float>{x, 5.0f}, memory::fill<float>{x.subspan(0, 2), 6.0f}), exec_options{});
        d.run(good);
        CHECK_FALSE(d.outcome(good));
        CHECK(d.read(x) == std::vector<float>{6, 6, 5, 5});
    });
}

TEST_CASE("a context with ops in flight hands them over when it is dropped")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(4);
            test::gate gate;
            hold<inout<float>> first(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
            exec<memory::fill<float>> second(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(first);
            gate.wait_for(1);
            d.submit(second);
            gate.open();
            detail::async_op_list dropped;
            d.context->drop(dropped);
            int handed_over = 0;
            while (dropped.pop_front())
                ++handed_over;
            CHECK(handed_over == 2);
            CHECK_FALSE(d.has_ended(first));
        },
        true);
}

TEST_SUITE_END();

} // namespace

#endif
