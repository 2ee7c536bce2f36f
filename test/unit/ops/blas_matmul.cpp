#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/blas/matmul.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace test_ops_blas_matmul {

namespace {

using namespace coaccel;
using blas::activation;
using blas::transpose;
using test::device_fixture;
using test::engine;

struct matmul_shape {
    std::size_t m, n, k;
};

constexpr matmul_shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {33, 17, 45}, {1, 19, 3}, {19, 1, 9}, {5, 6, 1}};
constexpr activation activations[] = {activation::none, activation::relu, activation::gelu};
constexpr transpose ways[] = {transpose::no, transpose::yes};
// Factors that are exact in every element type.
constexpr test::scale scales[] = {{1, 0}, {-0.5, 0}, {2, -0.25}};

double activated(activation what, double x)
{
    switch (what) {
    case activation::none: break;
    case activation::relu: return x > 0 ? x : 0;
    case activation::gelu: return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    }
    return x;
}

/// The activation of an expected sum of `terms` products. A GPU computes tanh with 11 bits.
test::expectation ended(test::expectation sum, activation what, std::size_t terms)
{
    if (what == activation::gelu)
        sum.magnitude += std::abs(sum.value) * 0x1p-10 / (2 * (static_cast<double>(terms) + 3) * 0x1p-24);
    sum.value = activated(what, sum.value);
    return sum;
}

template <class T, class R>
struct operands {
    test::matrix<T> a, b;
    test::matrix<R> c;
    test::vector<R> bias;
    transpose ta, tb;
    test::scale by;

    operands(const matmul_shape& s, transpose trans_a, transpose trans_b, std::size_t extra, const test::scale& scale,
             engine& random)
        : a(trans_a == transpose::no ? s.m : s.k, trans_a == transpose::no ? s.k : s.m, extra, random),
          b(trans_b == transpose::no ? s.k : s.n, trans_b == transpose::no ? s.n : s.k, extra, random),
          c(test::operand<R>(s.m, s.n, extra, scale.beta, random)), bias(s.m, 1, random), ta(trans_a), tb(trans_b),
          by(scale)
    {}

    test::expectation sum(std::size_t k, std::size_t i, std::size_t j) const
    {
        auto e = test::kept(c, by.beta, i, j);
        for (std::size_t p = 0; p < k; ++p)
            e.add(by.alpha * test::taken(a, ta, i, p) * test::taken(b, tb, p, j));
        return e;
    }
};

/// Runs matmul and matmul_bias on all operands, each with one of the activations.
template <class T, class R>
void check_products()
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        std::size_t count = 0;
        for (const auto& s : shapes)
            for (const auto ta : ways)
                for (const auto tb : ways)
                    for (const std::size_t extra : {0, 3})
                        for (const auto& by : scales) {
                            const auto what = activations[count++ % 3];
                            INFO("m ", s.m, ", n ", s.n, ", k ", s.k, ", trans_a ", int(ta), ", trans_b ", int(tb),
                                 ", extra ", extra, ", alpha ", by.alpha, ", beta ", by.beta, ", activation ",
                                 int(what));
                            const operands<T, R> o(s, ta, tb, extra, by, random);
                            const auto da = f.upload(o.a.data), db = f.upload(o.b.data);
                            const auto dc = f.upload(o.c.data), also_dc = f.upload(o.c.data);
                            const auto bias = f.upload(o.bias.data);
                            REQUIRE(test::exec_listed(f, blas::matmul<T, R>{.a = o.a.in(da),
                                                                            .b = o.b.in(db),
                                                                            .c = o.c.in(dc),
                                                                            .m = s.m,
                                                                            .n = s.n,
                                                                            .k = s.k,
                                                                            .alpha = static_cast<float>(by.alpha),
                                                                            .beta = static_cast<float>(by.beta),
                                                                            .trans_a = ta,
                                                                            .trans_b = tb,
                                                                            .lda = o.a.ld_field(),
                                                                            .ldb = o.b.ld_field(),
                                                                            .ldc = o.c.ld_field(),
                                                                            .activation = what}));
                            CHECK(o.c.difference(f.download(dc), s.k + 1, [&](std::size_t i, std::size_t j) {
                                return ended(o.sum(s.k, i, j), what, s.k + 1);
                            }) == "");
                            REQUIRE(test::exec_listed(f, blas::matmul_bias<T, R>{.a = o.a.in(da),
                                                                                 .b = o.b.in(db),
                                                                                 .bias = o.bias.in(bias),
                                                                                 .c = o.c.in(also_dc),
                                                                                 .m = s.m,
                                                                                 .n = s.n,
                                                                                 .k = s.k,
                                                                                 .alpha = static_cast<float>(by.alpha),
                                                                                 .beta = static_cast<float>(by.beta),
                                                                                 .trans_a = ta,
                                                                                 .trans_b = tb,
                                                                                 .lda = o.a.ld_field(),
                                                                                 .ldb = o.b.ld_field(),
                                                                                 .ldc = o.c.ld_field(),
                                                                                 .activation = what}));
                            CHECK(o.c.difference(f.download(also_dc), s.k + 2, [&](std::size_t i, std::size_t j) {
                                auto sum = o.sum(s.k, i, j);
                                sum.add(o.bias.at(i));
                                return ended(sum, what, s.k + 2);
                            }) == "");
                        }
    });
}

} // namespace

TEST_SUITE_BEGIN("blas matmul");

TEST_CASE("matmul of f32 multiplies, adds a bias and applies an activation")
{
    check_products<float, float>();
}

TEST_CASE("matmul of f16")
{
    check_products<half, half>();
    check_products<half, float>();
}

TEST_CASE("matmul of bf16")
{
    check_products<bfloat16, bfloat16>();
    check_products<bfloat16, float>();
}

TEST_CASE("every activation with and without a bias, at known values")
{
    const std::vector<float> x{-100, -3, -1, -0.5F, -0.0F, 0, 0.25F, 1, 2, 100};
    const auto rows = x.size();
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto a = f.upload(x);
        const auto one = f.upload(std::vector<float>{1});
        const auto bias = f.upload(std::vector<float>(rows, 0.5F));
        const auto c = f.upload(std::vector<float>(rows, std::nanf("")));
        for (const auto what : activations) {
            CAPTURE(what);
            const double most = what == activation::gelu ? 0x1p-10 : 0x1p-22;
            REQUIRE(test::exec_listed(
                f, blas::matmul<float>{.a = a, .b = one, .c = c, .m = rows, .n = 1, .k = 1, .activation = what}));
            auto got = f.download(c);
            for (std::size_t i = 0; i < rows; ++i)
                CHECK(std::abs(got[i] - activated(what, x[i])) <= most * std::abs(x[i]));
            REQUIRE(test::exec_listed(
                f, blas::matmul_bias<float>{
                       .a = a, .b = one, .bias = bias, .c = c, .m = rows, .n = 1, .k = 1, .activation = what}));
            got = f.download(c);
            for (std::size_t i = 0; i < rows; ++i)
                CHECK(std::abs(got[i] - activated(what, x[i] + 0.5)) <= most * std::abs(x[i] + 0.5));
        }
    });
}

TEST_CASE_TEMPLATE("a batch has one bias, and its matrices are at their strides", T, float, half, bfloat16)
{
    constexpr std::size_t m = 7, n = 5, k = 9, batch = 3;
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const bool one_a : {false, true})
            for (const std::size_t gap : {0, 4}) {
                CAPTURE(one_a);
                CAPTURE(gap);
                const std::size_t stride_a = one_a ? 0 : m * k + gap, stride_b = n * k + gap, stride_c = m * n + gap;
                const auto numbers = [&](std::size_t count) {
                    std::vector<T> made(count);
                    for (auto& x : made)
                        x = test::random_element<T>(random);
                    return made;
                };
                const auto a = numbers((batch - 1) * stride_a + m * k), b = numbers((batch - 1) * stride_b + n * k);
                const auto bias = numbers(m);
                const std::vector<T> c((batch - 1) * stride_c + m * n, test::poison<T>());
                const auto da = f.upload(a), db = f.upload(b), dc = f.upload(c), dbias = f.upload(bias);
                REQUIRE(test::exec_listed(f, blas::matmul_bias<T>{.a = da,
                                                                  .b = db,
                                                                  .bias = dbias,
                                                                  .c = dc,
                                                                  .m = m,
                                                                  .n = n,
                                                                  .k = k,
                                                                  .batch = batch,
                                                                  .stride_a = stride_a,
                                                                  .stride_b = stride_b,
                                                                  .stride_c = stride_c,
                                                                  .activation = activation::relu}));
                auto got = f.download(dc);
                for (std::size_t one = 0; one < batch; ++one)
                    for (std::size_t j = 0; j < n; ++j)
                        for (std::size_t i = 0; i < m; ++i) {
                            test::expectation sum;
                            sum.add(test::number(bias[i]));
                            for (std::size_t p = 0; p < k; ++p)
                                sum.add(test::number(a[one * stride_a + i + p * m]) *
                                        test::number(b[one * stride_b + p + j * k]));
                            T& element = got[one * stride_c + i + j * m];
                            CHECK(test::close<T>(test::number(element), ended(sum, activation::relu, k), k + 1));
                            element = test::poison<T>();
                        }
                CHECK(std::ranges::all_of(got, [](T x) { return test::same_bits(x, test::poison<T>()); }));
            }
    });
}

TEST_CASE("matmul of i8 is exact in i32")
{
    struct row {
        std::uint64_t m, n, k, gap, batch;
        std::int32_t alpha, beta;
    };
    constexpr row rows[] = {{4, 4, 4, 0, 1, 1, 0},    {8, 3, 12, 4, 1, 1, 1},  {4, 1, 8, 0, 3, 1, 0},
                            {16, 13, 64, 8, 2, 1, 1}, {8, 5, 16, 0, 1, 2, -3}, {16, 16, 32, 4, 2, -1, 2}};
    test::on_every_device([&](device_fixture& f, engine& random) {
        const auto numbers = [&random](std::uint64_t count) {
            std::vector<std::int8_t> made(count);
            for (auto& one : made)
                one = static_cast<std::int8_t>(random());
            return made;
        };
        for (const auto& r : rows) {
            INFO("m ", r.m, ", n ", r.n, ", k ", r.k, ", gap ", r.gap, ", batch ", r.batch, ", alpha ", r.alpha,
                 ", beta ", r.beta);
            const std::uint64_t lda = r.k + r.gap, ldb = r.k + r.gap, ldc = r.m + r.gap;
            const std::uint64_t stride_a = lda * r.m, stride_b = ldb * r.n, stride_c = ldc * r.n;
            const auto a = numbers(stride_a * r.batch), b = numbers(stride_b * r.batch);
            std::vector<std::int32_t> c(stride_c * r.batch);
            for (auto& one : c)
                one = static_cast<std::int32_t>(random() % 1000) - 500;
            const auto da = f.upload(a), db = f.upload(b);
            const auto dc = f.upload(c);
            REQUIRE(test::exec_listed(f, blas::matmul<std::int8_t, std::int32_t>{.a = da,
                                                                                 .b = db,
                                                                                 .c = dc,
                                                                                 .m = r.m,
                                                                                 .n = r.n,
                                                                                 .k = r.k,
                                                                                 .batch = r.batch,
                                                                                 .stride_a = stride_a,
                                                                                 .stride_b = stride_b,
                                                                                 .stride_c = stride_c,
                                                                                 .alpha = r.alpha,
                                                                                 .beta = r.beta,
                                                                                 .trans_a = transpose::yes,
                                                                                 .lda = lda,
                                                                                 .ldb = ldb,
                                                                                 .ldc = ldc}));
            for (std::uint64_t one = 0; one < r.batch; ++one)
                for (std::uint64_t j = 0; j < r.n; ++j)
                    for (std::uint64_t i = 0; i < r.m; ++i) {
                        std::int32_t sum = 0;
                        for (std::uint64_t p = 0; p < r.k; ++p)
                            sum += a[one * stride_a + p + i * lda] * b[one * stride_b + p + j * ldb];
                        std::int32_t& to = c[one * stride_c + i + j * ldc];
                        to = r.alpha * sum + r.beta * to;
                    }
            CHECK(f.download(dc) == c);
        }
    });
}

TEST_CASE("the factors of a product of i8 can be parameters of a plan")
{
    using product = blas::matmul<std::int8_t, std::int32_t>;
    constexpr std::uint64_t side = 4;
    plan_builder b("product of i8");
    const auto a = b.input<std::int8_t>(side * side, "a");
    const auto before = b.input<std::int32_t>(side * side, "before");
    const auto alpha = b.parameter<std::int32_t>("alpha");
    const auto beta = b.parameter<std::int32_t>("beta");
    const auto one = b.constant<std::int8_t>(std::vector<std::int8_t>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
    const auto c = b.output<std::int32_t>(side * side, "c");
    b.add(memory::copy<std::int32_t>{before, c});
    b.add(product{.a = a, .b = one, .c = c, .m = side, .n = side, .k = side, .beta = 1, .trans_a = transpose::yes},
          bind(&product::alpha, alpha), bind(&product::beta, beta));
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    std::vector<std::int8_t> factors;
    std::vector<std::int32_t> kept;
    for (int i = 0; i < int(side * side); ++i) {
        factors.push_back(static_cast<std::int8_t>(i - 8));
        kept.push_back(100 * i);
    }
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        struct scale {
            std::int32_t alpha, beta;
        };
        for (const auto by : {scale{2, -3}, scale{1, 0}, scale{-1, 1}}) {
            CAPTURE(by.alpha);
            std::vector<std::int32_t> got(side * side, -1);
            const auto done = test::await(
                f.io, loaded.value().async_run(from(factors), from(kept), to(got), value(by.alpha), value(by.beta)));
            REQUIRE_MESSAGE(done, done.error().message());
            for (std::uint64_t j = 0; j < side; ++j)
                for (std::uint64_t i = 0; i < side; ++i)
                    CHECK(got[i + j * side] == by.alpha * factors[j + i * side] + by.beta * kept[i + j * side]);
        }
    });
}

TEST_CASE("a fused layer in a plan has a parameter for its factor")
{
    using fused = blas::matmul_bias<float>;
    plan_builder b("fused layer");
    const auto x = b.input<float>(4, "x");
    const auto by = b.parameter<float>("by");
    const auto w = b.constant<float>(std::vector<float>{1, 2, 3, -4});
    const auto bias = b.constant<float>(std::vector<float>{0.5F, 1});
    const auto y = b.output<float>(4, "y");
    b.add(fused{.a = w, .b = x, .bias = bias, .c = y, .m = 2, .n = 2, .k = 2, .activation = activation::relu},
          bind(&fused::alpha, by));
    const auto described = b.finish();
    REQUIRE_MESSAGE(described, described.error().message());
    test::on_every_device([&](device_fixture& f, engine&) {
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        for (const float alpha : {1.0F, -2.0F}) {
            const std::vector<float> given{1, 2, 3, 0};
            std::vector<float> got(4, -1);
            REQUIRE(test::await(f.io, loaded.value().async_run(from(given), to(got), value(alpha))));
            const auto relu = [](float v) { return v > 0 ? v : 0; };
            CHECK(got == std::vector<float>{relu(alpha * 7 + 0.5F), relu(alpha * -6 + 1), relu(alpha * 3 + 0.5F),
                                            relu(alpha * 6 + 1)});
        }
    });
}

TEST_SUITE_END();

} // namespace test_ops_blas_matmul
