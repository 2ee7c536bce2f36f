#include "gpu.hpp"
#include "support/dense.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

// Large products of cuBLASLt, compared with gemm and with separate ops; small ones, against a reference, are in
// test/unit/ops.
namespace {

using namespace coaccel;
using blas::activation;
using test::await;
using test::gpu_fixture;

template <class T>
std::vector<T> lt_numbers(std::size_t count, unsigned seed, float most)
{
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> between(-most, most);
    std::vector<T> made(count);
    for (auto& x : made)
        x = T(between(random));
    return made;
}

template <class Op>
error_code lt_exec(gpu_fixture& f, const Op& op)
{
    const auto done = await(f.io, f.gpu.async_exec(op));
    return done ? error_code() : done.error();
}

template <class T>
double greatest_distance(const std::vector<T>& a, const std::vector<T>& b)
{
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        most = std::max(most, std::abs(test::number(a[i]) - test::number(b[i])));
    return most;
}

/// A multiple of the unit roundoff of T at the magnitude of a sum of k products of numbers below 1. A result of 16 bits
/// is rounded once, a sum of f32 in each step.
template <class T>
double lt_bound(std::size_t k)
{
    return (std::is_same_v<T, float> ? 64 : 16) * test::unit_roundoff<T>() * std::sqrt(static_cast<double>(k));
}

/// As above, for factors of f32 that may be rounded to TF32.
template <class T>
double lt_bound(std::size_t k, blas::math how)
{
    const double rounded = std::is_same_v<T, float> && how == blas::math::tf32 ? 4 * 0x1p-11 : 0;
    return lt_bound<T>(k) + rounded * std::sqrt(static_cast<double>(k));
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
    const auto a = await(f.io, f.gpu.async_upload(lt_numbers<T>(m * k, 1, 1))).value();
    const auto b = await(f.io, f.gpu.async_upload(lt_numbers<T>(k * n, 2, 1))).value();
    const auto c = await(f.io, f.gpu.async_alloc<T>(m * n)).value();
    const auto d = await(f.io, f.gpu.async_alloc<T>(m * n)).value();
    for (const auto ta : {blas::transpose::no, blas::transpose::yes})
        for (const auto tb : {blas::transpose::no, blas::transpose::yes}) {
            REQUIRE_FALSE(lt_exec(
                f, blas::matmul<T>{.a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb}));
            REQUIRE_FALSE(lt_exec(
                f, blas::gemm<T>{.a = a, .b = b, .c = d, .m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb}));
            CHECK(greatest_distance(await(f.io, f.gpu.async_download(c)).value(),
                                    await(f.io, f.gpu.async_download(d)).value()) < lt_bound<T>(k));
        }
}

TEST_CASE_TEMPLATE("each activation with each kind of math, with and without a bias", T, float, half, bfloat16)
{
    constexpr std::size_t m = 256, n = 96, k = 512;
    gpu_fixture f;
    const auto bias = lt_numbers<T>(m, 3, 4);
    const auto a = await(f.io, f.gpu.async_upload(lt_numbers<T>(m * k, 1, 1))).value();
    const auto b = await(f.io, f.gpu.async_upload(lt_numbers<T>(k * n, 2, 1))).value();
    const auto dbias = await(f.io, f.gpu.async_upload(bias)).value();
    const auto c = await(f.io, f.gpu.async_alloc<T>(m * n)).value();
    const auto sums = await(f.io, f.gpu.async_alloc<float>(m * n)).value();
    REQUIRE_FALSE(lt_exec(
        f, blas::matmul<T, float>{.a = a, .b = b, .c = sums, .m = m, .n = n, .k = k, .math = blas::math::pedantic}));
    const auto products = await(f.io, f.gpu.async_download(sums)).value();
    const auto count_wrong = [&](activation what, blas::math how, bool biased) {
        const auto got = await(f.io, f.gpu.async_download(c)).value();
        std::size_t wrong = 0;
        for (std::size_t p = 0; p < got.size(); ++p) {
            const double x = products[p] + (biased ? test::number(bias[p % m]) : 0);
            const double wanted = lt_activated(what, x);
            // A GPU computes tanh with 11 bits. The slope of gelu is below 1.2.
            const double bound = 1.2 * lt_bound<T>(k, how) + (what == activation::gelu ? 0x1p-10 * std::abs(x) : 0) +
                                 2 * test::unit_roundoff<T>() * std::abs(wanted);
            wrong += !(std::abs(test::number(got[p]) - wanted) <= bound);
        }
        return wrong;
    };
    for (const auto how : {blas::math::standard, blas::math::tf32, blas::math::pedantic})
        for (const auto what : {activation::none, activation::relu, activation::gelu}) {
            INFO("math ", int(how), ", activation ", int(what));
            const auto plain = lt_exec(
                f, blas::matmul<T>{.a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .activation = what, .math = how});
            REQUIRE_MESSAGE(!plain, plain.message());
            CHECK(count_wrong(what, how, false) == 0);
            const auto biased = lt_exec(
                f, blas::matmul_bias<T>{
                       .a = a, .b = b, .bias = dbias, .c = c, .m = m, .n = n, .k = k, .activation = what, .math = how});
            REQUIRE_MESSAGE(!biased, biased.message());
            CHECK(count_wrong(what, how, true) == 0);
        }
}

TEST_CASE("a fused layer agrees with separate ops, with the same bits each time")
{
    constexpr std::size_t m = 1024, n = 256, k = 512;
    gpu_fixture f;
    const auto a = await(f.io, f.gpu.async_upload(lt_numbers<float>(m * k, 1, 1))).value();
    const auto b = await(f.io, f.gpu.async_upload(lt_numbers<float>(k * n, 2, 1))).value();
    const auto bias = await(f.io, f.gpu.async_upload(lt_numbers<float>(m, 3, 4))).value();
    const auto c = await(f.io, f.gpu.async_alloc<float>(m * n)).value();
    const auto d = await(f.io, f.gpu.async_alloc<float>(m * n)).value();
    const blas::matmul_bias<float> fused{
        .a = a, .b = b, .bias = bias, .c = c, .m = m, .n = n, .k = k, .activation = activation::gelu};
    REQUIRE_FALSE(lt_exec(f, fused));
    const auto first = await(f.io, f.gpu.async_download(c)).value();
    for (int i = 0; i < 5; ++i) {
        REQUIRE_FALSE(lt_exec(f, fused));
        CHECK(await(f.io, f.gpu.async_download(c)).value() == first);
    }
    REQUIRE_FALSE(lt_exec(f, blas::gemm<float>{.a = a, .b = b, .c = d, .m = m, .n = n, .k = k}));
    REQUIRE_FALSE(
        lt_exec(f, prim::bias_activation<float>{
                       .x = d, .bias = bias, .y = d, .rows = n, .columns = m, .what = prim::activation::gelu}));
    // The difference of gelu with tanh and with erf, and tanh with few bits.
    CHECK(greatest_distance(first, await(f.io, f.gpu.async_download(d)).value()) < 0.1);
}

TEST_CASE("a large product of fp8 agrees with that of the same numbers in f32")
{
    constexpr std::size_t m = 512, n = 256, k = 1024;
    gpu_fixture f;
    const auto a = lt_numbers<float8_e4m3>(m * k, 1, 1);
    const auto b = lt_numbers<float8_e4m3>(k * n, 2, 1);
    const auto small_a = await(f.io, f.gpu.async_upload(a)).value();
    const auto small_b = await(f.io, f.gpu.async_upload(b)).value();
    const auto wide_a = await(f.io, f.gpu.async_upload(std::vector<float>(a.begin(), a.end()))).value();
    const auto wide_b = await(f.io, f.gpu.async_upload(std::vector<float>(b.begin(), b.end()))).value();
    const auto one = await(f.io, f.gpu.async_upload(std::vector<float>{1})).value();
    const auto two = await(f.io, f.gpu.async_upload(std::vector<float>{2})).value();
    const auto c = await(f.io, f.gpu.async_alloc<float>(m * n)).value();
    const auto d = await(f.io, f.gpu.async_alloc<float>(m * n)).value();
    const auto done =
        lt_exec(f, blas::matmul_fp8<float8_e4m3, float>{
                       .a = small_a, .b = small_b, .scale_a = one, .scale_b = two, .c = c, .m = m, .n = n, .k = k});
    if (test::lacks_fp8(done)) {
        MESSAGE("not run: " << done.message());
        return;
    }
    REQUIRE_MESSAGE(!done, done.message());
    REQUIRE_FALSE(lt_exec(
        f, blas::gemm<float>{
               .a = wide_a, .b = wide_b, .c = d, .m = m, .n = n, .k = k, .alpha = 2, .trans_a = blas::transpose::yes}));
    CHECK(greatest_distance(await(f.io, f.gpu.async_download(c)).value(),
                            await(f.io, f.gpu.async_download(d)).value()) < 0.1);
}

TEST_CASE("fused layers are part of the graph of a plan, with a parameter")
{
    constexpr std::size_t m = 256, n = 64;
    gpu_fixture f;
    using fused = blas::matmul_bias<bfloat16>;
    const auto w = lt_numbers<bfloat16>(m * m, 1, 0.125F);
    const auto bias = lt_numbers<bfloat16>(m, 2, 1);
    plan_builder p("two layers");
    const auto x = p.input<bfloat16>(m * n, "x");
    const auto by = p.parameter<float>("by");
    const auto weights = p.constant<bfloat16>(w);
    const auto biases = p.constant<bfloat16>(bias);
    const auto h = p.scratch<bfloat16>(m * n, "h");
    const auto y = p.output<bfloat16>(m * n, "y");
    p.add(fused{.a = weights, .b = x, .bias = biases, .c = h, .m = m, .n = n, .k = m, .activation = activation::relu},
          bind(&fused::alpha, by));
    p.add(fused{.a = weights, .b = h, .bias = biases, .c = y, .m = m, .n = n, .k = m});
    const auto loaded = await(f.io, f.gpu.async_load(p.finish().value()));
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    const auto dw = await(f.io, f.gpu.async_upload(w)).value();
    const auto dbias = await(f.io, f.gpu.async_upload(bias)).value();
    const auto dh = await(f.io, f.gpu.async_alloc<bfloat16>(m * n)).value();
    const auto dy = await(f.io, f.gpu.async_alloc<bfloat16>(m * n)).value();
    for (unsigned run = 0; run < 5; ++run) {
        const auto given = lt_numbers<bfloat16>(m * n, 10 + run, 1);
        const auto factor = static_cast<float>(run) / 2;
        std::vector<bfloat16> got(m * n);
        REQUIRE(await(f.io, loaded.value().async_run(from(given), to(got), value(factor))));
        const auto dx = await(f.io, f.gpu.async_upload(given)).value();
        REQUIRE_FALSE(lt_exec(f, fused{.a = dw,
                                       .b = dx,
                                       .bias = dbias,
                                       .c = dh,
                                       .m = m,
                                       .n = n,
                                       .k = m,
                                       .alpha = factor,
                                       .activation = activation::relu}));
        REQUIRE_FALSE(lt_exec(f, fused{.a = dw, .b = dh, .bias = dbias, .c = dy, .m = m, .n = n, .k = m}));
        CHECK(greatest_distance(got, await(f.io, f.gpu.async_download(dy)).value()) < 0.125);
    }
}

TEST_SUITE_END();
