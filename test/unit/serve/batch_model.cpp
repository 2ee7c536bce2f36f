#include "batched_plans.hpp"

#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

namespace test_serve_batch_model {

using namespace coaccel;
using serve::batch_model;
using serve::batch_plan;
using test::plus_one;

std::string error_of(std::vector<batch_plan> plans)
{
    const auto r = batch_model::create(std::move(plans));
    REQUIRE_FALSE(r);
    return r.error().message();
}

TEST_SUITE("batch_model")
{
    TEST_CASE("has the plans by size and the arguments of one row")
    {
        const auto m = batch_model::create({plus_one(8), plus_one(1)}).value();
        REQUIRE(m.plans().size() == 2);
        CHECK(m.plans()[0].rows == 1);
        CHECK(m.plans()[1].rows == 8);
        REQUIRE(m.inputs().size() == 1);
        CHECK(m.inputs()[0] == plan_argument{"x", dtype::f32, 4});
        REQUIRE(m.outputs().size() == 1);
        CHECK(m.outputs()[0] == plan_argument{"y", dtype::f32, 4});
        CHECK_FALSE(batch_model());
        CHECK(batch_model().plans().empty());
    }

    TEST_CASE("can be made of a set")
    {
        plan_set_builder set("model");
        const auto one = set.constant<float>(std::vector<float>(4, 1));
        for (const std::uint32_t rows : {1u, 2u}) {
            plan_builder& b = set.plan("rows" + std::to_string(rows));
            const auto x = b.input<float>(2 * rows);
            const auto y = b.output<float>(2 * rows);
            b.add(memory::copy<float>{.src = x, .dst = y});
            b.add(blas::axpy<float>{.x = one.subspan(0, 2 * rows), .y = y, .n = 2 * rows, .alpha = 1});
        }
        const auto described = set.finish().value();
        const std::uint32_t sizes[] = {1, 2};
        CHECK(batch_model::create(described, sizes).value().plans().size() == 2);
        const auto wrong = batch_model::create(described, std::span(sizes, 1));
        REQUIRE_FALSE(wrong);
        CHECK(wrong.error() == errc::length_mismatch);
        CHECK(wrong.error().message() == "batch_model: the set has 2 plans, given 1 sizes");
    }

    /// Plans of a set that copy rows of two by three elements.
    plan_set_description shaped_set(std::vector<std::uint64_t> rows, plan_shape last = {{2, 3}})
    {
        plan_set_builder set("model");
        for (const std::uint64_t n : rows) {
            plan_builder& b = set.plan("rows" + std::to_string(n));
            const plan_shape row = n == rows.back() ? last : plan_shape{{2, 3}};
            const auto x = b.input<float>(batch_of(n, row), "x");
            const auto y = b.output<float>(batch_of(n, row), "y");
            b.add(memory::copy<float>{.src = x, .dst = y});
        }
        return set.finish().value();
    }

    TEST_CASE("takes the sizes of the plans from their shapes")
    {
        const auto m = batch_model::create(shaped_set({8, 1})).value();
        REQUIRE(m.plans().size() == 2);
        CHECK(m.plans()[0].rows == 1);
        CHECK(m.plans()[1].rows == 8);
        CHECK(m.inputs()[0] == plan_argument{"x", dtype::f32, 6, {{2, 3}}});
        CHECK(m.outputs()[0] == plan_argument{"y", dtype::f32, 6, {{2, 3}}});
    }

    TEST_CASE("shapes that do not fit are refused with a message that names them")
    {
        const auto message = [](const auto& r) {
            REQUIRE_FALSE(r);
            CHECK(r.error() == errc::invalid_argument);
            return r.error().message();
        };
        CHECK(message(batch_model::create(shaped_set({1, 8}, {{3, 2}}))) ==
              "batch_model: the input x of the plan model.rows8 has the shape 3 x 2 in each row, that of another plan "
              "2 x 3");
        const auto set = shaped_set({4});
        CHECK(message(batch_model::create({batch_plan{2, set[0]}})) ==
              "batch_model: the input x of the plan model.rows4 has a shape of 4 rows, the plan a size of 2");
        plan_set_builder flat("model");
        plan_builder& b = flat.plan("one");
        const auto x = b.input<float>(4, "x");
        const auto y = b.output<float>(batch_of(2, {{2}}), "y");
        b.add(memory::copy<float>{.src = x, .dst = y});
        CHECK(message(batch_model::create(flat.finish().value())) ==
              "batch_model: x of the plan model.one has a shape without rows");
        CHECK(message(batch_model::create(plan_set_description())) == "batch_model: there is no plan");
    }

    TEST_CASE("a shape that only one of the plans has is taken over")
    {
        plan_builder b("flat");
        const auto x = b.input<float>(6);
        const auto y = b.output<float>(6);
        b.add(memory::copy<float>{.src = x, .dst = y});
        const auto set = shaped_set({4});
        const auto m = batch_model::create({batch_plan{1, b.finish().value()}, batch_plan{4, set[0]}}).value();
        CHECK(m.inputs()[0].shape == plan_shape{{2, 3}});
    }

    TEST_CASE("plans that do not fit are refused with a message that names them")
    {
        CHECK(error_of({}) == "batch_model: there is no plan");
        CHECK(error_of({batch_plan{3, {}}}) == "batch_model: the plan for 3 rows is empty");
        CHECK(error_of({plus_one(2), plus_one(2)}) == "batch_model: two plans have a size of 2 rows");
        CHECK(error_of({batch_plan{0, plus_one(2).plan}}) == "batch_model: the plan plus_one_2 has a size of 0 rows");
        CHECK(error_of({batch_plan{3, plus_one(2).plan}}) ==
              "batch_model: the input x of the plan plus_one_2 has 8 elements, which is no multiple of 3 rows");
        CHECK(error_of({plus_one(1, 4), plus_one(2, 5)}) ==
              "batch_model: the input x of the plan plus_one_2 has 5 elements of type f32 in each row, that of another "
              "plan 4 of type f32");
        plan_builder state("counter");
        const auto x = state.input<float>(4);
        const auto y = state.output<float>(4);
        const auto total = state.state<float>(4);
        state.add(blas::axpy<float>{.x = x, .y = total, .n = 4, .alpha = 1});
        state.add(memory::copy<float>{.src = total, .dst = y});
        CHECK(error_of({batch_plan{1, state.finish().value()}}) ==
              "batch_model: the plan counter has states, which would be common to all requests of a batch");
    }
}

} // namespace test_serve_batch_model
