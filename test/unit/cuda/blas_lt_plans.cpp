#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/lt_handle.hpp"
#include "cuda/plan/plan_recording.hpp"
#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace test_cuda_blas_lt_plans {

// Products of cuBLASLt in plans, over the fake driver, whose destructor reports what was left behind.
namespace {

using namespace coaccel;
using test::context_driver;
using test::cuda_world;
using test::plan_run;
using test::test_instance;

constexpr std::uint64_t bias_op_n = 3;

/// y = relu(alpha * w * x + beta * y + bias), then z = w * y; alpha and beta are parameters.
detail::plan_data products_plan()
{
    using fused = blas::matmul<float>;
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 2 * bias_op_n);
    const auto alpha = m.floats(slot_kind::parameter, 1);
    const auto beta = m.floats(slot_kind::parameter, 1);
    const auto w = m.floats(slot_kind::constant, 4);
    const auto bias = m.floats(slot_kind::constant, 2);
    const auto y = m.floats(slot_kind::output, 2 * bias_op_n);
    const auto z = m.floats(slot_kind::output, 2 * bias_op_n);
    m.add(fused{.a = w,
                .b = x,
                .d = y,
                .bias = bias,
                .m = 2,
                .n = bias_op_n,
                .k = 2,
                .beta = 1,
                .activation = blas::activation::relu});
    m.bind(&fused::alpha, alpha).bind(&fused::beta, beta);
    m.add(blas::matmul<float>{.a = w, .b = y, .d = z, .m = 2, .n = bias_op_n, .k = 2});
    return m.finish();
}

std::vector<float> fused_result(const std::vector<float>& x, float alpha)
{
    // w is ((1, 3), (2, -4)) by rows, the bias (0.5, 1).
    std::vector<float> y(x.size());
    for (std::size_t j = 0; j < bias_op_n; ++j) {
        y[2 * j] = std::max(0.0F, alpha * (x[2 * j] + 3 * x[2 * j + 1]) + 0.5F);
        y[2 * j + 1] = std::max(0.0F, alpha * (2 * x[2 * j] - 4 * x[2 * j + 1]) + 1);
    }
    return y;
}

/// y = w * x for the first column of x, then for the first two, and so on: `count` different problems.
detail::plan_data many_products_plan(std::uint64_t count)
{
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 2 * count);
    const auto w = m.floats(slot_kind::constant, 4);
    const auto y = m.floats(slot_kind::output, 2 * count);
    for (std::uint64_t n = 1; n <= count; ++n)
        m.add(blas::matmul<float>{.a = w, .b = x, .d = y, .m = 2, .n = n, .k = 2});
    return m.finish();
}

} // namespace

TEST_SUITE_BEGIN("plans with cuBLASLt");

TEST_CASE("products are part of the graph of a plan, with parameters for their factors")
{
    cuda_world w;
    context_driver d(w);
    const auto data = products_plan();
    test_instance i(d, data, 1, 1);
    i.set(i.first_constant(), {1, 2, 3, -4});
    i.set(i.first_constant() + 1, {0.5F, 1});
    REQUIRE_FALSE(i.load());
    CHECK(i.recorded);
    const int products = w.lt.calls("cublasLtMatmul");
    const std::vector<float> x{1, 2, -3, 4, 0, 5};
    for (const float alpha : {1.0F, -2.0F, 0.25F}) {
        plan_run r(i, {x, {alpha}, {0.0F}});
        CHECK_FALSE(d.outcome_of(*r.request));
        const auto y = fused_result(x, alpha);
        CHECK(r.outputs[0] == y);
        for (std::size_t j = 0; j < bias_op_n; ++j) {
            CHECK(r.outputs[1][2 * j] == y[2 * j] + 3 * y[2 * j + 1]);
            CHECK(r.outputs[1][2 * j + 1] == 2 * y[2 * j] - 4 * y[2 * j + 1]);
        }
    }
    // The graph ran, without calls of the library.
    CHECK(w.lt.calls("cublasLtMatmul") == products);
    CHECK_FALSE(i.unload());
}

TEST_CASE("C of a product in a graph is a matrix of its own")
{
    cuda_world w;
    context_driver d(w);
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 2);
    const auto c = m.floats(slot_kind::input, 2);
    const auto beta = m.floats(slot_kind::parameter, 1);
    const auto matrix = m.floats(slot_kind::constant, 4);
    const auto y = m.floats(slot_kind::output, 2);
    using added = blas::matmul<float>;
    m.add(added{.a = matrix, .b = x, .d = y, .c = c, .m = 2, .n = 1, .k = 2, .alpha = 2, .beta = 1});
    m.bind(&added::beta, beta);
    // add_fixed_scalars makes this of the other factor.
    const auto alpha = m.floats(slot_kind::constant, 1);
    m.bind(&added::alpha, alpha);
    const auto data = m.finish();
    test_instance i(d, data, 1, 1);
    i.set(i.first_constant(), {1, 2, 3, 4});
    i.set(i.first_constant() + 1, {2});
    REQUIRE_FALSE(i.load());
    CHECK(i.recorded);
    for (const float by : {0.0F, 1.0F, -3.0F}) {
        plan_run r(i, {{1, 10}, {100, 200}, {by}});
        CHECK_FALSE(d.outcome_of(*r.request));
        CHECK(r.outputs[0] == std::vector<float>{2 * 31 + by * 100, 2 * 42 + by * 200});
    }
    CHECK_FALSE(i.unload());
}

TEST_CASE("a product that cuBLASLt refuses fails the load of its plan, and the device goes on")
{
    cuda_world w;
    context_driver d(w);
    const auto data = products_plan();
    test_instance i(d, data, 1, 1);
    w.lt.set_algorithms({});
    CHECK(i.load() == errc::unsupported_op);
    w.lt.set_algorithms({{}});
    CHECK(d.losses == 0);
    test_instance again(d, data, 2, 1);
    CHECK_FALSE(again.load());
    CHECK(again.recorded);
    CHECK_FALSE(again.unload());
}

TEST_CASE("a plan of more different products than are kept is recorded")
{
    cuda_world w;
    context_driver d(w);
    constexpr std::uint64_t count = cuda::lt_handle::most_plans + 10;
    const auto data = many_products_plan(count);
    // The graph of the second one is recorded while the first one uses more than are kept.
    test_instance first(d, data, 1, 1);
    test_instance second(d, data, 2, 1);
    std::vector<int> waits;
    for (test_instance* const i : {&first, &second}) {
        i->set(i->first_constant(), {1, 2, 3, -4});
        const int waited = w.driver.calls("cuStreamSynchronize");
        REQUIRE_FALSE(i->load());
        waits.push_back(w.driver.calls("cuStreamSynchronize") - waited);
        CHECK(i->recorded);
        const int products = w.lt.calls("cublasLtMatmul");
        plan_run r(*i, {std::vector<float>(2 * count, 1.0F)});
        CHECK_FALSE(d.outcome_of(*r.request));
        for (std::uint64_t n = 0; n < count; ++n) {
            CHECK(r.outputs[0][2 * n] == 4);
            CHECK(r.outputs[0][2 * n + 1] == -2);
        }
        CHECK(w.lt.calls("cublasLtMatmul") == products);
    }
    // Only the first one launched the products again, which must not fill the queue of the driver.
    CHECK(waits[0] > waits[1]);
    CHECK_FALSE(first.unload());
    CHECK_FALSE(second.unload());
    // Those without users are given up when the next one is made.
    const auto few = products_plan();
    test_instance other(d, few, 3, 1);
    CHECK_FALSE(other.load());
    CHECK(w.lt.alive() <= 1 + 5 * cuda::lt_handle::most_plans);
    CHECK_FALSE(other.unload());
}

TEST_CASE("an error of cuBLASLt in the captures of a plan is the error of the load")
{
    cuda_world w;
    context_driver d(w);
    const auto data = products_plan();
    test_instance i(d, data, 1, 1);
    // The products of the warm-up succeed.
    const int before = static_cast<int>(data.ops.size());
    for (int capture = 1; capture <= cuda::plan_recording::most_captures; ++capture)
        w.lt.fail("cublasLtMatmul", CUBLAS_STATUS_INVALID_VALUE, before + capture);
    CHECK(i.load() == cuda::make_error(CUBLAS_STATUS_INVALID_VALUE));
    CHECK(d.losses == 0);
    test_instance again(d, data, 2, 1);
    CHECK_FALSE(again.load());
    CHECK(again.recorded);
    CHECK_FALSE(again.unload());
}

TEST_SUITE_END();

} // namespace test_cuda_blas_lt_plans
