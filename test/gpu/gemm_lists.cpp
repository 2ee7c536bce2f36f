#include "child.hpp"
#include "products.hpp"

#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <complex>
#include <string>
#include <vector>

// Products of matrices in any buffers, compared with gemm.
namespace {

using namespace coaccel;
using blas::transpose;
using test::await;
using test::gpu_fixture;
using test::greatest_distance;
using test::product_bound;
using test::random_numbers;
using test::run_listed;

template <class T>
struct product_fields {
    using S = blas::scalar<T>;

    std::uint64_t m, n, k;
    S alpha = 1;
    S beta = 0;
    transpose trans_a = transpose::no;
    transpose trans_b = transpose::no;
    std::uint64_t lda = 0, ldb = 0, ldc = 0;
};

/// A product with buffers of its own, and with another C for gemm.
template <class T>
struct listed_product {
    buffer<T> a, b, c, of_gemm;
    blas::gemm<T> op;

    /// `first` is the place of the first element in each buffer.
    listed_product(gpu_fixture& f, const product_fields<T>& given, unsigned seed, std::size_t first)
        : op{.a = {},
             .b = {},
             .c = {},
             .m = given.m,
             .n = given.n,
             .k = given.k,
             .alpha = given.alpha,
             .beta = given.beta,
             .trans_a = given.trans_a,
             .trans_b = given.trans_b,
             .lda = given.lda,
             .ldb = given.ldb,
             .ldc = given.ldc}
    {
        const auto s = op.shape();
        const auto extent = [](std::uint64_t rows, std::uint64_t cols, std::uint64_t ld) {
            return (cols - 1) * (ld == 0 ? rows : ld) + rows;
        };
        const std::uint64_t of_a = extent(s.a_rows(), s.a_cols(), op.lda),
                            of_b = extent(s.b_rows(), s.b_cols(), op.ldb), of_c = extent(op.m, op.n, op.ldc);
        // Factors that are multiplied by zero are not read.
        a = f.upload(op.alpha == blas::scalar<T>(0) ? std::vector<T>(first + of_a, test::poison<T>())
                                                    : random_numbers<T>(first + of_a, seed));
        b = f.upload(random_numbers<T>(first + of_b, seed + 1));
        const auto previous = random_numbers<T>(first + of_c, seed + 2);
        c = f.upload(previous);
        of_gemm = f.upload(previous);
        op.a = a.subspan(first, of_a);
        op.b = b.subspan(first, of_b);
        op.c = of_gemm.subspan(first, of_c);
    }

    /// The same product in the list.
    blas::gemm<T> in_list() const
    {
        auto listed = op;
        listed.c = c.subspan(op.c.raw.offset, op.c.size());
        return listed;
    }

    void check(gpu_fixture& f) const
    {
        run_listed(f, op);
        CHECK(greatest_distance(f.download(c), f.download(of_gemm)) < product_bound<T>(op.k));
    }
};

template <class T>
void check_batched(gpu_fixture& f, const product_fields<T>& product, std::size_t first)
{
    blas::gemm_batched<T> op{.m = product.m,
                             .n = product.n,
                             .k = product.k,
                             .alpha = product.alpha,
                             .beta = product.beta,
                             .trans_a = product.trans_a,
                             .trans_b = product.trans_b,
                             .lda = product.lda,
                             .ldb = product.ldb,
                             .ldc = product.ldc};
    std::vector<listed_product<T>> all;
    for (unsigned i = 0; i < 5; ++i) {
        all.emplace_back(f, product, 10 * i, first);
        const auto listed = all.back().in_list();
        op.add(listed.a, listed.b, listed.c);
    }
    run_listed(f, op);
    for (const auto& each : all)
        each.check(f);
}

template <class T>
void check_grouped(gpu_fixture& f, const std::vector<product_fields<T>>& products, std::size_t first,
                   blas::math how = blas::math::standard)
{
    blas::gemm_grouped<T> op{.math = how};
    std::vector<listed_product<T>> all;
    for (const auto& product : products) {
        all.emplace_back(f, product, static_cast<unsigned>(10 * all.size()), first);
        op.add(all.back().in_list());
    }
    run_listed(f, op);
    for (const auto& each : all)
        each.check(f);
}

template <class T>
std::vector<product_fields<T>> different_products()
{
    using S = blas::scalar<T>;
    return {
        {.m = 256, .n = 130, .k = 300},
        {.m = 64, .n = 512, .k = 96, .alpha = S(-0.5F), .beta = S(1), .trans_a = transpose::yes},
        {.m = 513, .n = 33, .k = 129, .beta = S(0.25F), .ldc = 520},
        {.m = 128, .n = 128, .k = 512, .trans_b = transpose::yes, .lda = 136},
        {.m = 1, .n = 300, .k = 77, .beta = S(2)},
        {.m = 200, .n = 200, .k = 64, .alpha = S(0), .beta = S(0.5F)},
    };
}

/// Kernels for aligned matrices read several elements at once. If cuBLAS takes one for matrices that are not aligned,
/// the context is lost, so this runs in a process of its own.
template <class T>
int unaligned_child(const std::vector<std::string>&)
{
    gpu_fixture f;
    check_batched<T>(f, {.m = 256, .n = 128, .k = 512}, 1);
    check_batched<T>(f, {.m = 256, .n = 128, .k = 512, .trans_a = transpose::yes, .trans_b = transpose::yes}, 3);
    check_grouped<T>(f, {{.m = 256, .n = 128, .k = 512}, {.m = 64, .n = 64, .k = 64, .beta = blas::scalar<T>(1)}}, 1);
    return 0;
}

const test::child registered_lists[] = {
    {"unaligned lists of f32", &unaligned_child<float>},
    {"unaligned lists of f64", &unaligned_child<double>},
    {"unaligned lists of f16", &unaligned_child<half>},
    {"unaligned lists of bf16", &unaligned_child<bfloat16>},
    {"unaligned lists of complex64", &unaligned_child<std::complex<float>>},
};

} // namespace

TEST_SUITE_BEGIN("gpu gemm lists");

TEST_CASE_TEMPLATE("gemm_batched agrees with gemm", T, float, double, half, bfloat16, std::complex<float>,
                   std::complex<double>)
{
    using S = blas::scalar<T>;
    gpu_fixture f;
    check_batched<T>(f, {.m = 256, .n = 130, .k = 300, .alpha = S(0.5F), .beta = S(2)}, 0);
    check_batched<T>(f, {.m = 128, .n = 256, .k = 512, .trans_a = transpose::yes, .lda = 520, .ldc = 136}, 0);
    check_batched<T>(f, {.m = 100, .n = 70, .k = 50, .alpha = S(0), .beta = S(0.5F)}, 0);
}

TEST_CASE_TEMPLATE("gemm_grouped agrees with gemm for each of different products", T, float, double, half, bfloat16,
                   std::complex<float>, std::complex<double>)
{
    gpu_fixture f;
    check_grouped<T>(f, different_products<T>(), 0);
    // Except for f32, cuBLAS then has no call for all products.
    check_grouped<T>(f, different_products<T>(), 0, blas::math::pedantic);
}

TEST_CASE("the matrices of a list need no alignment")
{
    for (const auto* const type : {"f32", "f64", "f16", "bf16", "complex64"}) {
        std::string output;
        CHECK_MESSAGE(test::run_child(std::string("unaligned lists of ") + type, {}, output) == 0, output);
    }
}

TEST_CASE_TEMPLATE("lists of products are part of the graph of a plan", T, float, bfloat16, std::complex<float>)
{
    using batched = blas::gemm_batched<T>;
    using S = blas::scalar<T>;
    constexpr std::size_t side = 128, square = side * side, count = 3;
    gpu_fixture f;
    std::vector<std::vector<T>> weights;
    for (unsigned i = 0; i < 2 * count; ++i)
        weights.push_back(random_numbers<T>(square, 1 + i, 0.125F));
    plan_builder p("lists");
    const auto x = p.input<T>(square * count, "x");
    const auto by = p.parameter<S>("by");
    const auto h = p.scratch<T>(square * count, "h");
    const auto y = p.output<T>(square * count, "y");
    batched first{.m = side, .n = side, .k = side};
    blas::gemm_grouped<T> second;
    // Parts of side, side - 8 and side - 16 columns; the rest of the result is that of the first list.
    const auto columns = [](std::size_t i) { return side - 8 * i; };
    for (std::size_t i = 0; i < count; ++i) {
        first.add(p.constant<T>(weights[i]), x.subspan(i * square, square), h.subspan(i * square, square));
        second.add({.a = p.constant<T>(weights[count + i]),
                    .b = h.subspan(i * square, square),
                    .c = y.subspan(i * square, side * columns(i)),
                    .m = side,
                    .n = columns(i),
                    .k = side,
                    .beta = S(1)});
    }
    p.add(first, bind(&batched::alpha, by));
    p.add(memory::copy<T>{.src = h, .dst = y});
    p.add(second);
    const auto made = p.finish();
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made.value().capturable());
    const auto loaded = await(f.io, f.gpu.async_load(made.value()));
    REQUIRE_MESSAGE(loaded, loaded.error().message());
    for (unsigned run = 0; run < 5; ++run) {
        INFO("run ", run);
        const auto given = random_numbers<T>(square * count, 20 + run);
        const auto factor = S(static_cast<float>(run) / 2);
        std::vector<T> got(square * count);
        REQUIRE(await(f.io, loaded.value().async_run(from(given), to(got), value(factor))));
        const auto dx = f.upload(given);
        const auto dh = f.alloc<T>(square * count), dy = f.alloc<T>(square * count);
        std::vector<buffer<T>> kept;
        for (std::size_t i = 0; i < count; ++i) {
            kept.push_back(f.upload(weights[i]));
            run_listed(f, blas::gemm<T>{.a = kept.back(),
                                        .b = dx.subspan(i * square, square),
                                        .c = dh.subspan(i * square, square),
                                        .m = side,
                                        .n = side,
                                        .k = side,
                                        .alpha = factor});
        }
        run_listed(f, memory::copy<T>{.src = dh, .dst = dy});
        for (std::size_t i = 0; i < count; ++i) {
            kept.push_back(f.upload(weights[count + i]));
            run_listed(f, blas::gemm<T>{.a = kept.back(),
                                        .b = dh.subspan(i * square, square),
                                        .c = dy.subspan(i * square, side * columns(i)),
                                        .m = side,
                                        .n = columns(i),
                                        .k = side,
                                        .beta = S(1)});
        }
        CHECK(greatest_distance(got, f.download(dy)) < product_bound<T>(side) / 4);
    }
}

TEST_SUITE_END();
