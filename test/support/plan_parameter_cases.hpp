#ifndef COACCEL_TEST_SUPPORT_PLAN_PARAMETER_CASES_HPP
#define COACCEL_TEST_SUPPORT_PLAN_PARAMETER_CASES_HPP

#include "support/plan_cases.hpp"

#include <limits>

// Plans with parameters on any backend. Must be included in only one source file of a program.
namespace {

/// y = by * x, and perhaps an op that cannot be recorded.
inline detail::plan_data scaling_plan(bool recordable)
{
    plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto by = m.floats(slot_kind::parameter, 1);
    const auto y = m.floats(slot_kind::output, 4);
    m.add(memory::fill<float>{y, 0});
    m.add(blas::axpy<float>{.x = x, .y = y, .n = 4, .alpha = 1}).bind(&blas::axpy<float>::alpha, by);
    if (!recordable)
        m.add(blas::dot<float>{x, x, 4});
    return m.finish();
}

/// y = alpha * a * x + beta * y, where y is NaN or x before. One of the factors is a parameter, the other a constant,
/// which is the second constant after `a`.
inline detail::plan_data product_plan(bool alpha_is_parameter, bool from_nan)
{
    using op = blas::gemv<float>;
    plan_maker m;
    const auto x = m.floats(slot_kind::input, 2);
    const auto by = m.floats(slot_kind::parameter, 1);
    const auto a = m.floats(slot_kind::constant, 4);
    const auto other = m.floats(slot_kind::constant, 1);
    const auto y = m.floats(slot_kind::output, 2);
    m.add(memory::fill<float>{y, std::numeric_limits<float>::quiet_NaN()});
    if (!from_nan)
        m.add(memory::copy<float>{x, y});
    m.add(op{.a = a, .x = x, .y = y, .m = 2, .n = 2, .alpha = 1, .beta = 1});
    m.bind(&op::alpha, alpha_is_parameter ? by : other).bind(&op::beta, alpha_is_parameter ? other : by);
    return m.finish();
}

TEST_SUITE_BEGIN("plan parameters");

TEST_CASE("runs that are started together have their own values")
{
    for_each_plan_context([](context_world& w) {
        for (const bool recordable : {true, false}) {
            CAPTURE(recordable);
            context_driver d(w);
            const auto data = scaling_plan(recordable);
            std::vector<std::unique_ptr<test_instance>> all;
            for (std::uint64_t id = 1; id <= 3; ++id) {
                all.push_back(std::make_unique<test_instance>(d, data, id, id));
                REQUIRE_FALSE(all.back()->load());
            }
            std::vector<std::unique_ptr<plan_run>> runs;
            for (int n = 0; n < 30; ++n) {
                const float by = static_cast<float>(n % 7) - 3;
                runs.push_back(std::make_unique<plan_run>(*all[static_cast<std::size_t>(n % 3)],
                                                          test::float_arguments{{1, 2, 3, 4}, {by}},
                                                          exec_options{.lane = n % 2}));
                d.submit(*runs.back()->request);
            }
            d.run_until([&] { return d.ended.size() == runs.size(); });
            for (std::size_t n = 0; n < runs.size(); ++n) {
                const float by = static_cast<float>(n % 7) - 3;
                CHECK_FALSE(d.outcome(*runs[n]->request));
                CHECK(runs[n]->outputs[0] == std::vector<float>{by, 2 * by, 3 * by, 4 * by});
            }
            d.ended.clear();
            for (auto& i : all)
                CHECK_FALSE(i->unload());
        }
    });
}

TEST_CASE("one factor of a product is a parameter, and the other one stays")
{
    for_each_plan_context([](context_world& w) {
        for (const bool alpha_is_parameter : {true, false}) {
            CAPTURE(alpha_is_parameter);
            context_driver d(w);
            const auto data = product_plan(alpha_is_parameter, false);
            test_instance i(d, data, 1, 1);
            i.set(i.first_constant(), {1, 0, 1, 1});
            i.set(i.first_constant() + 1, {3});
            REQUIRE_FALSE(i.load());
            CHECK(i.recorded);
            for (const float by : {2.0f, 0.5f, -1.0f, 0.0f, 2.0f}) {
                plan_run r(i, {{10, 20}, {by}});
                CHECK_FALSE(d.outcome_of(*r.request));
                const float alpha = alpha_is_parameter ? by : 3;
                const float beta = alpha_is_parameter ? 3 : by;
                CHECK(r.outputs[0] == std::vector<float>{alpha * 30 + beta * 10, alpha * 20 + beta * 20});
            }
            CHECK_FALSE(i.unload());
        }
    });
}

TEST_CASE("a result whose factor is a parameter of zero is not read")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        const auto data = product_plan(false, true);
        test_instance i(d, data, 1, 1);
        i.set(i.first_constant(), {1, 0, 1, 1});
        i.set(i.first_constant() + 1, {3});
        REQUIRE_FALSE(i.load());
        plan_run r(i, {{10, 20}, {0}});
        CHECK_FALSE(d.outcome_of(*r.request));
        CHECK(r.outputs[0] == std::vector<float>{90, 60});
        plan_run nan(i, {{10, 20}, {1}});
        CHECK_FALSE(d.outcome_of(*nan.request));
        CHECK(nan.outputs[0][0] != nan.outputs[0][0]);
    });
}

TEST_SUITE_END();

} // namespace

#endif
