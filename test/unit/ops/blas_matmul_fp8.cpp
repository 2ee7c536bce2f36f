#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/matmul.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace test_ops_blas_matmul_fp8 {

namespace {

using namespace coaccel;
using blas::activation;
using test::device_fixture;
using test::engine;

struct fp8_shape {
    std::size_t m, n, k, gap, batch;
    float beta;
    activation what;
};

constexpr fp8_shape shapes[] = {
    {16, 1, 16, 0, 1, 0, activation::none},  {16, 5, 32, 16, 1, 0, activation::relu},
    {48, 33, 16, 0, 1, 1, activation::gelu}, {32, 7, 112, 32, 3, -0.5F, activation::none},
    {64, 16, 64, 0, 2, 0, activation::gelu},
};

template <class T>
std::vector<T> fp8_numbers(std::size_t count, engine& random)
{
    std::uniform_real_distribution<float> between(-4, 4);
    std::vector<T> made(count);
    for (auto& x : made)
        x = T(between(random));
    return made;
}

double gelu(double x)
{
    return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}

/// A product: its operands, strides, and the expected elements.
template <class T, class R, class Bias>
struct fp8_product {
    fp8_shape s;
    std::size_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    std::vector<T> a;
    std::vector<float8_e4m3> b;
    std::vector<R> c;
    std::vector<Bias> bias;

    fp8_product(const fp8_shape& shape, engine& random)
        : s(shape), lda(s.k + s.gap), ldb(s.k + s.gap), ldc(s.m + s.gap), stride_a(lda * s.m), stride_b(ldb * s.n),
          stride_c(ldc * s.n), a(fp8_numbers<T>(stride_a * s.batch, random)),
          b(fp8_numbers<float8_e4m3>(stride_b * s.batch, random)), c(stride_c * s.batch, test::poison<R>()), bias(s.m)
    {
        for (auto& x : bias)
            x = test::random_element<Bias>(random);
        if (s.beta != 0)
            for (std::size_t one = 0; one < s.batch; ++one)
                for (std::size_t j = 0; j < s.n; ++j)
                    for (std::size_t i = 0; i < s.m; ++i)
                        c[one * stride_c + i + j * ldc] = test::random_element<R>(random);
    }

    template <class Op>
    Op fill(Op op) const
    {
        op.m = s.m;
        op.n = s.n;
        op.k = s.k;
        op.batch = s.batch;
        op.stride_a = stride_a;
        op.stride_b = stride_b;
        op.stride_c = stride_c;
        op.lda = lda;
        op.ldb = ldb;
        op.ldc = ldc;
        op.alpha = 0.5F;
        op.beta = s.beta;
        op.activation = s.what;
        return op;
    }

    /// `by` is the product of alpha and both scales.
    void check(std::vector<R> got, double by, bool with_bias) const
    {
        std::size_t wrong = 0;
        for (std::size_t one = 0; one < s.batch; ++one)
            for (std::size_t j = 0; j < s.n; ++j)
                for (std::size_t i = 0; i < s.m; ++i) {
                    const std::size_t at = one * stride_c + i + j * ldc;
                    double sum = s.beta == 0 ? 0 : s.beta * test::number(c[at]);
                    double magnitude = std::abs(sum);
                    for (std::size_t p = 0; p < s.k; ++p) {
                        const double term = by * test::number(a[one * stride_a + p + i * lda]) *
                                            test::number(b[one * stride_b + p + j * ldb]);
                        sum += term;
                        magnitude += std::abs(term);
                    }
                    sum += with_bias ? test::number(bias[i]) : 0;
                    const double wanted = s.what == activation::relu   ? std::max(sum, 0.0)
                                          : s.what == activation::gelu ? gelu(sum)
                                                                       : sum;
                    // Tensor cores add products of fp8 with fewer bits than f32 has.
                    const double bound =
                        0x1p-12 * magnitude + 0x1p-10 * std::abs(sum) + 2 * test::unit_roundoff<R>() * std::abs(wanted);
                    if (!(std::abs(test::number(got[at]) - wanted) <= bound))
                        ++wrong;
                    got[at] = test::poison<R>();
                }
        CHECK(wrong == 0);
        CHECK(std::ranges::all_of(got, [](R x) { return test::same_bits(x, test::poison<R>()); }));
    }
};

template <class T, class R, class Bias>
void check_fp8()
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const auto& s : shapes) {
            INFO("m ", s.m, ", n ", s.n, ", k ", s.k, ", gap ", s.gap, ", batch ", s.batch, ", beta ", s.beta,
                 ", activation ", int(s.what));
            const fp8_product<T, R, Bias> p(s, random);
            const auto a = f.upload(p.a);
            const auto b = f.upload(p.b);
            const auto scale_a = f.upload(std::vector<float>{0.25F}), scale_b = f.upload(std::vector<float>{3});
            const auto c = f.upload(p.c), also_c = f.upload(p.c);
            const auto bias = f.upload(p.bias);
            const auto done = test::exec_listed(
                f, p.fill(blas::matmul_fp8<T, R>{.a = a, .b = b, .scale_a = scale_a, .scale_b = scale_b, .c = c}));
            if (!done && test::lacks_fp8(done.error())) {
                MESSAGE("not run: " << done.error().message());
                return;
            }
            REQUIRE_MESSAGE(done, done.error().message());
            p.check(f.download(c), 0.5 * 0.25 * 3, false);
            const auto biased = test::exec_listed(
                f, p.fill(blas::matmul_fp8_bias<T, R>{
                       .a = a, .b = b, .scale_a = scale_a, .scale_b = scale_b, .bias = bias, .c = also_c}));
            REQUIRE_MESSAGE(biased, biased.error().message());
            p.check(f.download(also_c), 0.5 * 0.25 * 3, true);
        }
    });
}

} // namespace

TEST_SUITE_BEGIN("blas matmul of fp8");

TEST_CASE("matmul_fp8 has scales, and results in f16")
{
    check_fp8<float8_e4m3, half, half>();
    check_fp8<float8_e5m2, half, half>();
}

TEST_CASE("matmul_fp8 with results in bf16")
{
    check_fp8<float8_e4m3, bfloat16, bfloat16>();
    check_fp8<float8_e5m2, bfloat16, bfloat16>();
}

TEST_CASE("matmul_fp8 with results in f32 has a bias in bf16")
{
    check_fp8<float8_e4m3, float, bfloat16>();
    check_fp8<float8_e5m2, float, bfloat16>();
}

TEST_SUITE_END();

} // namespace test_ops_blas_matmul_fp8
