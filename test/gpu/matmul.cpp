#include "products.hpp"

#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

// Large products of cuBLASLt, compared with gemm and with separate ops.
namespace {

using namespace coaccel;
using blas::activation;
using blas::transpose;
using test::await;
using test::gpu_fixture;
using test::greatest_distance;
using test::product_bound;
using test::random_numbers;
using test::run_listed;

/// The bound for a sum that was computed in f32, before it is rounded to T. Factors of f32 may be rounded to TF32.
template <class T>
double sum_bound(std::size_t k, blas::math how = blas::math::standard)
{
    const double root = std::sqrt(static_cast<double>(k));
    if constexpr (std::is_same_v<T, float>)
        return product_bound<float>(k) + (how == blas::math::tf32 ? 4 * 0x1p-11 * root : 0);
    // Tensor cores truncate.
    return 0x1p-12 * root;
}

double lt_activated(activation what, double x)
{
    switch (what) {
    case activation::none: break;
    case activation::relu: return x > 0 ? x : 0;
    case activation::gelu: return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    }
    return x;
}

} // namespace

TEST_SUITE_BEGIN("gpu matmul");

TEST_CASE_TEMPLATE("large products agree with gemm", T, float, half, bfloat16)
{
    constexpr std::size_t m = 768, n = 513, k = 1024;
    gpu_fixture f;
    const auto a = f.upload(random_numbers<T>(m * k, 1));
    const auto b = f.upload(random_numbers<T>(k * n, 2));
    const auto c = f.alloc<T>(m * n);
    const auto d = f.alloc<T>(m * n);
    for (const auto ta : {transpose::no, transpose::yes})
        for (const auto tb : {transpose::no, transpose::yes}) {
            run_listed(f,
                       blas::matmul<T>{.a = a, .b = b, .d = c, .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb});
            run_listed(f, blas::gemm<T>{.a = a, .b = b, .c = d, .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb});
            CHECK(greatest_distance(f.download(c), f.download(d)) < product_bound<T>(k));
        }
}

TEST_CASE_TEMPLATE("each activation with each kind of math, with and without a bias", T, float, half, bfloat16)
{
    constexpr std::size_t m = 256, n = 96, k = 512;
    gpu_fixture f;
    const auto bias = random_numbers<T>(m, 3, 4);
    const auto a = f.upload(random_numbers<T>(m * k, 1));
    const auto b = f.upload(random_numbers<T>(k * n, 2));
    const auto dbias = f.upload(bias);
    const auto d = f.alloc<T>(m * n);
    const auto sums = f.alloc<float>(m * n);
    run_listed(f,
               blas::matmul<T, float>{.a = a, .b = b, .d = sums, .m = m, .n = n, .k = k, .math = blas::math::pedantic});
    const auto products = f.download(sums);
    const auto count_wrong = [&](activation what, blas::math how, bool biased) {
        const auto got = f.download(d);
        // Before it adds the bias, cuBLASLt then rounds the sum to the type of the result.
        const bool rounded_twice = sizeof(T) == 2 && biased && what == activation::gelu;
        std::size_t wrong = 0;
        for (std::size_t p = 0; p < got.size(); ++p) {
            const double x = products[p] + (biased ? test::number(bias[p % m]) : 0);
            const double wanted = lt_activated(what, x);
            const double sum_error =
                sum_bound<T>(k, how) +
                (rounded_twice ? test::unit_roundoff<T>() * std::abs(static_cast<double>(products[p])) : 0);
            // A GPU computes tanh with 11 bits. The slope of gelu is below 1.2.
            const double bound = 1.2 * sum_error + (what == activation::gelu ? 0x1p-10 * std::abs(x) : 0) +
                                 2 * test::unit_roundoff<T>() * std::abs(wanted);
            wrong += !(std::abs(test::number(got[p]) - wanted) <= bound);
        }
        return wrong;
    };
    for (const auto how : {blas::math::standard, blas::math::tf32, blas::math::pedantic})
        for (const auto what : {activation::none, activation::relu, activation::gelu}) {
            INFO("math ", int(how), ", activation ", int(what));
            blas::matmul<T> op{.a = a, .b = b, .d = d, .m = m, .n = n, .k = k, .activation = what, .math = how};
            run_listed(f, op);
            CHECK(count_wrong(what, how, false) == 0);
            op.bias = dbias;
            run_listed(f, op);
            CHECK(count_wrong(what, how, true) == 0);
        }
}

TEST_CASE("a fused layer agrees with separate ops, with the same bits each time")
{
    constexpr std::size_t m = 1024, n = 256, k = 512;
    gpu_fixture f;
    const auto a = f.upload(random_numbers<float>(m * k, 1));
    const auto b = f.upload(random_numbers<float>(k * n, 2));
    const auto bias = f.upload(random_numbers<float>(m, 3, 4));
    const auto c = f.alloc<float>(m * n);
    const auto d = f.alloc<float>(m * n);
    const blas::matmul<float> fused{
        .a = a, .b = b, .d = c, .bias = bias, .m = m, .n = n, .k = k, .activation = activation::gelu};
    run_listed(f, fused);
    const auto first = f.download(c);
    for (int i = 0; i < 5; ++i) {
        run_listed(f, fused);
        CHECK(f.download(c) == first);
    }
    run_listed(f, blas::gemm<float>{.a = a, .b = b, .c = d, .m = m, .n = n, .k = k});
    run_listed(f, prim::bias_activation<float>{
                      .x = d, .bias = bias, .y = d, .rows = n, .columns = m, .what = prim::activation::gelu});
    // The difference of gelu with tanh and with erf, and tanh with few bits.
    CHECK(greatest_distance(first, f.download(d)) < 0.1);
}

TEST_CASE_TEMPLATE("row-major products with a bias for each column agree with column-major ones", T, float, half,
                   bfloat16)
{
    constexpr std::size_t m = 200, n = 384, k = 512, ldd = n + 8;
    gpu_fixture f;
    const auto bias = random_numbers<T>(n, 3, 4);
    const auto a = f.upload(random_numbers<T>(m * k, 1));
    const auto b = f.upload(random_numbers<T>(k * n, 2));
    const auto dbias = f.upload(bias);
    const auto sums = f.alloc<float>(m * n);
    // A matrix that is stored row by row is the transposed one, stored column by column.
    const auto other = [](transpose t) { return t == transpose::no ? transpose::yes : transpose::no; };
    for (const auto ta : {transpose::no, transpose::yes})
        for (const auto tb : {transpose::no, transpose::yes}) {
            INFO("trans_a ", int(ta), ", trans_b ", int(tb));
            const auto d = f.upload(std::vector<T>(m * ldd, T(-1.0F)));
            run_listed(f, blas::matmul<T>{.a = a,
                                          .b = b,
                                          .d = d,
                                          .bias = dbias,
                                          .m = m,
                                          .n = n,
                                          .k = k,
                                          .trans_a = ta,
                                          .trans_b = tb,
                                          .ldd = ldd,
                                          .order = blas::order::row_major,
                                          .activation = activation::relu});
            run_listed(
                f, blas::matmul<T, float>{
                       .a = a, .b = b, .d = sums, .m = m, .n = n, .k = k, .trans_a = other(ta), .trans_b = other(tb)});
            const auto got = f.download(d);
            const auto products = f.download(sums);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < ldd; ++j) {
                    const double found = test::number(got[i * ldd + j]);
                    const double wanted =
                        j < n ? lt_activated(activation::relu, products[i + j * m] + test::number(bias[j])) : -1;
                    const double bound =
                        j < n ? 2 * sum_bound<T>(k) + 2 * test::unit_roundoff<T>() * std::abs(wanted) : 0;
                    wrong += !(std::abs(found - wanted) <= bound);
                }
            CHECK(wrong == 0);
        }
}

TEST_CASE_TEMPLATE("products are added to one C for all of them, which stays, or to the previous results", T, float,
                   half, bfloat16)
{
    constexpr std::size_t m = 256, n = 96, k = 320, batch = 3;
    gpu_fixture f;
    const auto given = random_numbers<T>(m * n, 3, 4);
    std::vector<T> previous;
    for (std::size_t i = 0; i < batch; ++i)
        previous.insert(previous.end(), given.begin(), given.end());
    const auto a = f.upload(random_numbers<T>(m * k * batch, 1));
    const auto b = f.upload(random_numbers<T>(k * n, 2));
    const auto c = f.upload(given);
    const auto d = f.upload(std::vector<T>(m * n * batch, test::poison<T>()));
    const auto in_place = f.upload(previous), expected = f.upload(previous);
    blas::matmul<T> op{.a = a,
                       .b = b,
                       .d = d,
                       .c = c,
                       .m = m,
                       .n = n,
                       .k = k,
                       .batch = batch,
                       .stride_a = m * k,
                       .stride_d = m * n,
                       .alpha = 0.5F,
                       .beta = -2};
    run_listed(f, op);
    op.c = {};
    op.d = in_place;
    run_listed(f, op);
    run_listed(f, blas::gemm_strided_batched<T>{.a = a,
                                                .b = b,
                                                .c = expected,
                                                .m = m,
                                                .n = n,
                                                .k = k,
                                                .batch = batch,
                                                .stride_a = m * k,
                                                .stride_c = m * n,
                                                .alpha = 0.5F,
                                                .beta = -2});
    const auto wanted = f.download(expected);
    CHECK(greatest_distance(f.download(d), wanted) < product_bound<T>(k));
    CHECK(greatest_distance(f.download(in_place), wanted) < product_bound<T>(k));
    CHECK(f.download(c) == given);
}

TEST_CASE("fused layers are part of the graph of a plan, with a parameter")
{
    constexpr std::size_t m = 256, n = 64;
    gpu_fixture f;
    using fused = blas::matmul<bfloat16>;
    const auto w = random_numbers<bfloat16>(m * m, 1, 0.125F);
    const auto bias = random_numbers<bfloat16>(m, 2);
    plan_builder p("two layers");
    const auto x = p.input<bfloat16>(m * n, "x");
    const auto by = p.parameter<float>("by");
    const auto weights = p.constant<bfloat16>(w);
    const auto biases = p.constant<bfloat16>(bias);
    const auto h = p.scratch<bfloat16>(m * n, "h");
    const auto y = p.output<bfloat16>(m * n, "y");
    p.add(fused{.a = weights, .b = x, .d = h, .bias = biases, .m = m, .n = n, .k = m, .activation = activation::relu},
          bind(&fused::alpha, by));
    p.add(fused{.a = weights, .b = h, .d = y, .bias = biases, .m = m, .n = n, .k = m});
    const auto made = p.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made.value().capturable());
    const auto loaded = await(f.io, f.gpu.async_load(made.value()));
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    const auto dw = f.upload(w);
    const auto dbias = f.upload(bias);
    const auto dh = f.alloc<bfloat16>(m * n);
    const auto dy = f.alloc<bfloat16>(m * n);
    for (unsigned run = 0; run < 5; ++run) {
        const auto given = random_numbers<bfloat16>(m * n, 10 + run);
        const auto factor = static_cast<float>(run + 1) / 2;
        std::vector<bfloat16> got(m * n);
        REQUIRE(await(f.io, loaded.value().async_run(from(given), to(got), value(factor))));
        const auto dx = f.upload(given);
        run_listed(f, fused{.a = dw,
                            .b = dx,
                            .d = dh,
                            .bias = dbias,
                            .m = m,
                            .n = n,
                            .k = m,
                            .alpha = factor,
                            .activation = activation::relu});
        run_listed(f, fused{.a = dw, .b = dh, .d = dy, .bias = dbias, .m = m, .n = n, .k = m});
        CHECK(greatest_distance(got, f.download(dy)) < 0.125);
    }
}

TEST_SUITE_END();
