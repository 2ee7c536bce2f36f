#ifndef COACCEL_TEST_SUPPORT_PLAN_CASES_HPP
#define COACCEL_TEST_SUPPORT_PLAN_CASES_HPP

#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

namespace test {

/// y = constant + 2 x, by way of scratch; state += y.
struct sum_plan {
    explicit sum_plan(std::uint64_t n = 4)
    {
        using coaccel::slot_kind;
        plan_maker m;
        const auto x = m.floats(slot_kind::input, n);
        const auto y = m.floats(slot_kind::output, n);
        const auto c = m.floats(slot_kind::constant, n);
        const auto t = m.floats(slot_kind::scratch, n);
        const auto sum = m.floats(slot_kind::state, n);
        m.add(coaccel::memory::copy<float>{c, t});
        m.add(coaccel::blas::axpy<float>{.x = x, .y = t, .n = n, .alpha = 2});
        m.add(coaccel::memory::copy<float>{t, y});
        m.add(coaccel::blas::axpy<float>{.x = y, .y = sum, .n = n, .alpha = 1});
        data = m.finish();
    }

    coaccel::detail::plan_data data;
};

/// An op that no backend implements.
struct unknown_op {
    using reply = void;
    static constexpr std::string_view name = "test.unknown";
    static constexpr coaccel::library lib = coaccel::library::user;

    coaccel::inout<float> x;

    coaccel::error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(unknown_op, (), (x), (), ())
};

} // namespace test

// The plan ops on any backend. Must be included in only one source file of a program.
namespace {

using namespace coaccel;
using test::context_driver;
using test::context_world;
using test::exec;
using test::for_each_plan_context;
using test::plan_maker;
using test::plan_run;
using test::sum_plan;
using test::test_instance;

TEST_SUITE_BEGIN("plan ops");

TEST_CASE("a plan is loaded, run any number of times, and unloaded")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        test_instance i(d, plan.data, 1, 1);
        i.set(i.first_constant(), {1, 2, 3, 4});
        i.set(i.first_state(), {100, 100, 100, 100});
        REQUIRE_FALSE(i.load());
        CHECK(i.recorded);
        // Loading runs the ops, but not on the state.
        CHECK(i.get(i.first_state()) == std::vector<float>(4, 100.0f));
        for (const float x : {1.0f, 10.0f}) {
            plan_run r(i, {{x, x, x, x}});
            CHECK_FALSE(d.outcome_of(*r.request));
            CHECK(r.outputs[0] == std::vector<float>{1 + 2 * x, 2 + 2 * x, 3 + 2 * x, 4 + 2 * x});
        }
        CHECK(i.get(i.first_state()) == std::vector<float>{124, 126, 128, 130});
        CHECK_FALSE(i.unload());
        plan_run late(i, {{0, 0, 0, 0}});
        const auto ec = d.outcome_of(*late.request);
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == "plan.run: instance 1 is not loaded");
        CHECK(i.unload() == errc::invalid_argument);
    });
}

TEST_CASE("runs of one instance that are started together do not mix their arguments")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        test_instance i(d, plan.data, 1, 1);
        i.set(i.first_constant(), {0, 0, 0, 0});
        i.set(i.first_state(), {0, 0, 0, 0});
        REQUIRE_FALSE(i.load());
        std::vector<std::unique_ptr<plan_run>> runs;
        for (int n = 0; n < 20; ++n) {
            const auto x = static_cast<float>(n);
            runs.push_back(std::make_unique<plan_run>(i, test::float_arguments{std::vector<float>(4, x)},
                                                      exec_options{.lane = n % 3}));
            d.submit(*runs.back()->request);
        }
        exec<detail::plan_unload_op> unload(detail::plan_unload_op{i.id, i.chain}, exec_options{.lane = 3});
        d.submit(unload);
        d.run_until([&] { return d.ended.size() == runs.size() + 1; });
        CHECK_FALSE(d.outcome(unload));
        for (std::size_t n = 0; n < runs.size(); ++n) {
            CHECK_FALSE(d.outcome(*runs[n]->request));
            CHECK(runs[n]->outputs[0] == std::vector<float>(4, 2 * static_cast<float>(n)));
        }
        d.ended.clear();
        CHECK(i.get(i.first_state()) == std::vector<float>(4, 380.0f));
    });
}

TEST_CASE("plans on one chain that have a state in common change it in the order of their runs")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan adding;
        plan_maker m;
        const auto y = m.floats(slot_kind::output, 4);
        const auto state = m.floats(slot_kind::state, 4);
        m.add(blas::scal<float>{.x = state, .n = 4, .alpha = 2});
        m.add(memory::copy<float>{state, y});
        const auto doubling = m.finish();
        test_instance a(d, adding.data, 1, 1);
        test_instance b(d, doubling, 2, 1);
        b.refs[b.first_state()] = a.refs[a.first_state()];
        a.set(a.first_constant(), {0, 0, 0, 0});
        a.set(a.first_state(), {1, 1, 1, 1});
        REQUIRE_FALSE(a.load());
        REQUIRE_FALSE(b.load());
        // Neither load has changed it.
        CHECK(b.get(b.first_state()) == std::vector<float>(4, 1.0f));
        std::vector<std::unique_ptr<plan_run>> runs;
        for (int n = 0; n < 12; ++n) {
            const exec_options how{.lane = n % 3};
            if (n % 2 == 0)
                runs.push_back(std::make_unique<plan_run>(a, test::float_arguments{std::vector<float>(4, 1.0f)}, how));
            else
                runs.push_back(std::make_unique<plan_run>(b, test::float_arguments{}, how));
            d.submit(*runs.back()->request);
        }
        d.run_until([&] { return d.ended.size() == runs.size(); });
        float total = 1;
        for (std::size_t n = 0; n < runs.size(); ++n) {
            CHECK_FALSE(d.outcome(*runs[n]->request));
            total = n % 2 == 0 ? total + 2 : 2 * total;
            if (n % 2 == 1)
                CHECK(runs[n]->outputs[0] == std::vector<float>(4, total));
        }
        d.ended.clear();
        // The state stays while one of the plans is loaded.
        CHECK_FALSE(a.unload());
        plan_run last(b, {});
        CHECK_FALSE(d.outcome_of(*last.request));
        CHECK(last.outputs[0] == std::vector<float>(4, 2 * total));
        CHECK_FALSE(b.unload());
    });
}

TEST_CASE("several chains run at once on several lanes")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        std::vector<std::unique_ptr<test_instance>> all;
        for (std::uint64_t n = 0; n < 6; ++n) {
            all.push_back(std::make_unique<test_instance>(d, plan.data, n + 1, n / 2 + 1));
            all.back()->set(all.back()->first_constant(), std::vector<float>(4, static_cast<float>(n)));
            all.back()->set(all.back()->first_state(), std::vector<float>(4, 0));
        }
        std::vector<std::unique_ptr<test::load_request>> loads;
        for (auto& i : all) {
            loads.push_back(i->make_load({.lane = static_cast<int>(i->id % 3)}));
            d.submit(*loads.back());
        }
        d.run_until([&] { return d.ended.size() == loads.size(); });
        for (auto& l : loads)
            CHECK_FALSE(d.outcome(*l));
        d.ended.clear();
        std::vector<std::unique_ptr<plan_run>> runs;
        for (int round = 0; round < 10; ++round)
            for (auto& i : all) {
                runs.push_back(std::make_unique<plan_run>(*i, test::float_arguments{std::vector<float>(4, 1)},
                                                          exec_options{.lane = (round + static_cast<int>(i->id)) % 4}));
                d.submit(*runs.back()->request);
            }
        d.run_until([&] { return d.ended.size() == runs.size(); });
        for (std::size_t n = 0; n < runs.size(); ++n) {
            CHECK_FALSE(d.outcome(*runs[n]->request));
            CHECK(runs[n]->outputs[0] == std::vector<float>(4, 2 + static_cast<float>(n % all.size())));
        }
    });
}

TEST_CASE("a plan without arguments and one without ops run")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        plan_maker m;
        m.add(memory::fill<float>{m.floats(slot_kind::state, 3), 5});
        const auto fill = m.finish();
        test_instance i(d, fill, 7, 2);
        REQUIRE_FALSE(i.load());
        CHECK_FALSE(d.outcome_of(*plan_run(i, {}).request));
        CHECK(i.get(i.first_state()) == std::vector<float>(3, 5));
        const detail::plan_data nothing;
        test_instance empty(d, nothing, 8, 2);
        REQUIRE_FALSE(empty.load());
        CHECK_FALSE(d.outcome_of(*plan_run(empty, {}).request));
    });
}

TEST_CASE("a plan with random numbers draws other numbers each time, beginning with the first")
{
    for_each_plan_context([](context_world& w) {
        for (const auto algorithm : {rand::algorithm::philox, rand::algorithm::mt19937}) {
            CAPTURE(int(algorithm));
            context_driver d(w);
            const rand::generator_options how{.algorithm = algorithm, .seed = 7};
            plan_maker m;
            const auto y = m.floats(slot_kind::output, 8);
            m.add(rand::uniform<float>{.dst = y, .from = rand::make_generator(how)});
            const auto data = m.finish();
            test_instance i(d, data, 1, 1);
            REQUIRE_FALSE(i.load());
            plan_run first(i, {});
            plan_run second(i, {});
            d.submit(*first.request);
            d.submit(*second.request);
            d.run_until([&] { return d.ended.size() == 2; });
            CHECK_FALSE(d.outcome(*first.request));
            CHECK_FALSE(d.outcome(*second.request));
            d.ended.clear();
            const auto expected = rand::make_generator(how);
            for (const auto* drawn : {&first, &second}) {
                const auto x = d.floats(8);
                exec<rand::uniform<float>> draw(rand::uniform<float>{.dst = x, .from = expected}, exec_options{});
                CHECK_FALSE(d.outcome_of(draw));
                CHECK(drawn->outputs[0] == d.read(x));
            }
        }
    });
}

TEST_CASE("a plan with an op that the backend does not implement is refused, with the name of the op")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        plan_maker m;
        m.add(test::unknown_op{m.floats(slot_kind::state, 3)});
        const auto data = m.finish();
        test_instance i(d, data, 1, 1);
        const auto ec = i.load();
        CHECK(ec == errc::unsupported_op);
        CHECK(ec.message().starts_with("test.unknown: "));
        CHECK(i.unload() == errc::invalid_argument);
    });
}

TEST_CASE("an instance is not loaded twice")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const sum_plan plan;
        test_instance i(d, plan.data, 1, 1);
        REQUIRE_FALSE(i.load());
        const auto ec = i.load();
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == "plan.load: instance 1 is already loaded");
        CHECK_FALSE(i.unload());
        CHECK_FALSE(i.load());
    });
}

TEST_CASE("a context that dies during a run ends the run")
{
    for_each_plan_context([](context_world& w) {
        if (!w.can_poison())
            return;
        context_driver d(w);
        const sum_plan plan;
        test_instance i(d, plan.data, 1, 1);
        REQUIRE_FALSE(i.load());
        w.poison();
        plan_run r(i, {{0, 0, 0, 0}});
        d.submit(*r.request);
        d.run_until([&] { return d.losses > 0; });
        CHECK(d.outcome(*r.request));
    });
}

TEST_SUITE_END();

} // namespace

#endif
