#include "gpu.hpp"

#include <complex>
#include <limits>
#include <vector>

namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;

constexpr std::size_t n = 256;

constexpr const char* source = R"(
extern "C" __global__ void scale(const float* x, float* y, float by, long long plus)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * by + (float)plus;
}
)";

plan load(gpu_fixture& f, const plan_builder& b, plan_options how = {})
{
    auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    auto made = await(f.io, f.gpu.async_load(described.value(), how));
    REQUIRE_MESSAGE(made, made.error().message());
    return std::move(made).value();
}

TEST_SUITE_BEGIN("gpu plan parameters");

TEST_CASE("the arguments of kernels in graphs differ from run to run, with many runs at once")
{
    for (const bool recordable : {true, false}) {
        CAPTURE(recordable);
        gpu_fixture f;
        const auto k = test::compile(f.io, f.gpu, source, "scale");
        const jit::launch_shape shape{.grid = {n / 128}, .block = {128}};
        plan_builder b("kernels");
        const auto x = b.input<float>(n);
        const auto t = b.scratch<float>(n);
        const auto y = b.output<float>(n);
        const auto by = b.parameter<float>("by");
        const auto plus = b.parameter<std::int64_t>("plus");
        b.add(jit::launch(k, shape, in<float>(x), out<float>(t), by, plus));
        b.add(jit::launch(k, shape, in<float>(t), out<float>(y), 10.0f, plus));
        // Random numbers cannot be part of a graph.
        if (!recordable)
            b.add(rand::uniform<float>{.dst = b.scratch<float>(n), .from = rand::make_generator({.seed = 1})});
        const plan p = load(f, b, {.instances = 5});
        constexpr int runs = 100;
        const std::vector<float> given(n, 3);
        std::vector<std::vector<float>> got(runs, std::vector<float>(n));
        int ended = 0;
        for (int i = 0; i < runs; ++i)
            p.async_run(from(given), to(got[i]), value(static_cast<float>(i % 7)), value(std::int64_t(i % 5)),
                        [&](error_code ec) {
                            CHECK_FALSE(ec);
                            ++ended;
                        });
        test::run_until(f.io, [&] { return ended == runs; });
        for (int i = 0; i < runs; ++i)
            CHECK(got[i] == std::vector<float>(n, static_cast<float>((3 * (i % 7) + i % 5) * 10 + i % 5)));
    }
}

/// c = alpha * a * b + beta * c with ones in a and b and twos in c, and both factors as parameters.
template <class T, class Op>
void check_product(Op op)
{
    constexpr std::size_t side = 32;
    gpu_fixture f;
    plan_builder b("product");
    const auto c_in = b.input<T>(side * side);
    const auto a = b.constant<T>(std::vector<T>(side * side, T(1.0f)));
    const auto c = b.output<T>(side * side);
    const auto alpha = b.parameter<blas::scalar<T>>("alpha");
    const auto beta = b.parameter<blas::scalar<T>>("beta");
    b.add(memory::copy<T>{c_in, c});
    op.a = a;
    op.b = a;
    op.c = c;
    op.m = op.n = op.k = side;
    if constexpr (requires { op.batch; })
        op.batch = 1;
    b.add(op, bind(&Op::alpha, alpha), bind(&Op::beta, beta));
    const plan p = load(f, b);
    const std::vector<T> given(side * side, T(2.0f));
    for (const float first : {1.0f, -0.5f, 0.0f, 2.0f})
        for (const float second : {0.0f, 1.0f, -3.0f}) {
            std::vector<T> got(side * side);
            REQUIRE(await(f.io, p.async_run(from(given), to(got), value(blas::scalar<T>(first)),
                                            value(blas::scalar<T>(second)))));
            CHECK(got == std::vector<T>(side * side, T(static_cast<float>(side) * first + 2 * second)));
        }
}

TEST_CASE("products of every element type have parameters as factors")
{
    check_product<float>(blas::gemm<float>{});
    check_product<double>(blas::gemm<double>{});
    check_product<half>(blas::gemm<half>{});
    check_product<bfloat16>(blas::gemm<bfloat16>{});
    check_product<float>(blas::gemm_strided_batched<float>{});
    check_product<half>(blas::gemm_strided_batched<half>{});
}

/// y = beta * y for an op over `nan`, whose alpha is a constant zero, with beta as a parameter. `add` adds it.
template <class T, class Add>
void check_scaling(std::size_t count, const Add& add)
{
    gpu_fixture f;
    plan_builder b("scaling");
    const auto y_in = b.input<T>(count);
    const auto nan = b.constant<T>(std::vector<T>(count, T(std::numeric_limits<float>::quiet_NaN())));
    const auto y = b.output<T>(count);
    const auto beta = b.parameter<blas::scalar<T>>("beta");
    b.add(memory::copy<T>{y_in, y});
    add(b, nan, y, beta);
    const plan p = load(f, b);
    const std::vector<T> given(count, T(2.0f));
    for (const float by : {0.0f, 1.0f, -3.0f}) {
        std::vector<T> got(count);
        REQUIRE(await(f.io, p.async_run(from(given), to(got), value(blas::scalar<T>(by)))));
        CHECK(got == std::vector<T>(count, T(2 * by)));
    }
}

TEST_CASE("a product that is multiplied by a constant zero is not read, with a parameter as the factor of the result")
{
    constexpr std::size_t side = 32;
    check_scaling<float>(side * side, [](auto& b, const auto& nan, const auto& y, const auto& beta) {
        using op = blas::symm<float>;
        b.add(op{.a = nan, .b = nan, .c = y, .m = side, .n = side, .alpha = 0}, bind(&op::beta, beta));
    });
    check_scaling<std::complex<double>>(side * side, [](auto& b, const auto& nan, const auto& y, const auto& beta) {
        using op = blas::hemm<std::complex<double>>;
        b.add(op{.a = nan, .b = nan, .c = y, .m = side, .n = side, .alpha = 0}, bind(&op::beta, beta));
    });
    check_scaling<float>(side * side, [](auto& b, const auto& nan, const auto& y, const auto& beta) {
        using op = blas::gemm<float>;
        b.add(op{.a = nan, .b = nan, .c = y, .m = side, .n = side, .k = side, .alpha = 0}, bind(&op::beta, beta));
    });
    check_scaling<half>(4, [](auto& b, const auto& nan, const auto& y, const auto& beta) {
        using op = blas::gemv_strided_batched<half>;
        b.add(op{.a = nan, .x = nan, .y = y, .m = 2, .n = 2, .batch = 2, .stride_y = 2, .alpha = 0},
              bind(&op::beta, beta));
    });
    check_scaling<float>(1, [](auto& b, const auto& nan, const auto& y, const auto& beta) {
        using op = blas::symv<float>;
        b.add(op{.a = nan, .x = nan, .y = y, .n = 1, .alpha = 0}, bind(&op::beta, beta));
    });
}

TEST_CASE("a matrix is changed by a product of vectors with a parameter as its factor")
{
    using ger = blas::ger<double>;
    gpu_fixture f;
    plan_builder b("ger");
    const auto x = b.input<double>(4);
    const auto y = b.output<double>(16);
    b.add(memory::fill<double>{y, 1});
    b.add(ger{.x = x, .y = x, .a = y, .m = 4, .n = 4}, bind(&ger::alpha, b.parameter<double>()));
    const plan p = load(f, b);
    const std::vector<double> given{1, 2, 3, 4};
    for (const double factor : {2.0, 0.0, -1.0}) {
        std::vector<double> got(16);
        REQUIRE(await(f.io, p.async_run(from(given), value(factor), to(got))));
        for (std::size_t i = 0; i < 16; ++i)
            CHECK(got[i] == 1 + factor * given[i % 4] * given[i / 4]);
    }
}

TEST_SUITE_END();

} // namespace
