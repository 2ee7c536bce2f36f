#include "gpu.hpp"
#include "support/batches.hpp"
#include "support/dense_reference.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

// Factorizations of sizes and batches that take too long on a CPU. Small ones, against a reference, are in
// test/unit/ops, whose cases also run on the GPU.
namespace {

using namespace coaccel;
using test::batch;
using test::engine;
using test::gpu_fixture;
using test::reference;
using test::tolerance;

/// The order of the matrices, and how many there are.
struct shape {
    std::size_t n, count;
};

constexpr std::int32_t unset = std::numeric_limits<std::int32_t>::min();

constexpr shape shapes[] = {{5, 20000}, {32, 3000}, {33, 500}, {128, 40}, {300, 3}};

template <class T>
batch<T> well_conditioned(const shape& s, std::size_t rows, engine& random)
{
    batch<T> made(rows, s.n, s.count, {1, 3}, random);
    for (std::size_t m = 0; m < s.count; ++m)
        for (std::size_t j = 0; j < s.n; ++j)
            made(m, s.n - 1 - j, j) += T(static_cast<blas::real_part<T>>(s.n + 1));
    return made;
}

/// Packed square matrices with a large element in each column: on the diagonal, or on the other one, so that rows are
/// exchanged.
template <class T>
batch<T> dominant(std::size_t n, std::size_t count, bool exchanged, engine& random)
{
    batch<T> made(n, n, count, {0, 0}, random);
    for (std::size_t m = 0; m < count; ++m)
        for (std::size_t j = 0; j < n; ++j)
            made(m, exchanged ? n - 1 - j : j, j) += T(static_cast<blas::real_part<T>>(n + 1));
    return made;
}

/// The elements of packed matrices, without the margins.
template <class T>
std::vector<T> elements_of(const batch<T>& b)
{
    return {b.data.begin() + test::margin, b.data.end() - test::margin};
}

/// Packed square matrices as a run of a plan returns them.
template <class T>
struct results {
    std::size_t n;
    std::vector<T> data;

    results(std::size_t order, std::size_t count) : n(order), data(order * order * count, test::poison<T>()) {}

    reference<T> operator[](std::size_t m) const
    {
        reference<T> made(n, n);
        for (std::size_t i = 0; i < n * n; ++i)
            made.data[i] = test::number(data[m * n * n + i]);
        return made;
    }
};

/// op(A)
template <class T>
reference<T> taken(const reference<T>& a, blas::transpose t)
{
    if (t == blas::transpose::no)
        return a;
    auto made = a.adjoint();
    if (t == blas::transpose::yes)
        for (auto& x : made.data)
            x = test::conjugate(x);
    return made;
}

} // namespace

TEST_SUITE_BEGIN("blas batches on a GPU");

TEST_CASE_TEMPLATE("large batches of equations are solved", T, float, double, std::complex<float>, std::complex<double>)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    gpu_fixture f;
    for (const auto& s : shapes) {
        CAPTURE(s.n);
        const auto a = well_conditioned<T>(s, s.n, random);
        const batch<T> b(s.n, 2, s.count, {0, 1}, random);
        const auto matrices = f.upload(a.data), right = f.upload(b.data);
        const auto pivots = f.alloc<std::int32_t>(s.n * s.count);
        const auto info = f.upload(std::vector<std::int32_t>(s.count, unset));
        REQUIRE(f.exec(blas::getrf_batched<T>{.a = a.in(matrices),
                                              .pivots = pivots,
                                              .info = info,
                                              .n = s.n,
                                              .batch = s.count,
                                              .stride_a = a.stride,
                                              .lda = a.ld}));
        REQUIRE(f.exec(blas::getrs_batched<T>{.a = a.in(matrices),
                                              .pivots = pivots,
                                              .b = b.in(right),
                                              .n = s.n,
                                              .nrhs = 2,
                                              .batch = s.count,
                                              .stride_a = a.stride,
                                              .stride_b = b.stride,
                                              .lda = a.ld}));
        CHECK(a.gaps_remain(f.download(matrices)));
        CHECK(f.download(info) == std::vector<std::int32_t>(s.count));
        const auto got = f.download(right);
        CHECK(b.gaps_remain(got));
        for (std::size_t m = 0; m < s.count; m += 1 + s.count / 50) {
            const auto whole = a[m], x = b.matrix_of(got, m);
            CHECK((whole * x - b[m]).norm() <= tolerance<T>(s.n) * whole.norm() * x.norm());
        }
    }
}

TEST_CASE_TEMPLATE("large batches of least squares are solved", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    gpu_fixture f;
    for (const auto& s : shapes) {
        CAPTURE(s.n);
        const std::size_t rows = s.n + 7;
        const auto a = well_conditioned<T>(s, rows, random);
        const batch<T> c(rows, 1, s.count, {0, 2}, random);
        const auto matrices = f.upload(a.data), right = f.upload(c.data);
        const auto info = f.upload(std::vector<std::int32_t>(s.count, unset));
        REQUIRE(f.exec(blas::gels_batched<T>{.a = a.in(matrices),
                                             .c = c.in(right),
                                             .info = info,
                                             .m = rows,
                                             .n = s.n,
                                             .nrhs = 1,
                                             .batch = s.count,
                                             .stride_a = a.stride,
                                             .stride_c = c.stride,
                                             .lda = a.ld}));
        CHECK(f.download(info) == std::vector<std::int32_t>(s.count));
        CHECK(a.gaps_remain(f.download(matrices)));
        const auto got = f.download(right);
        CHECK(c.gaps_remain(got));
        for (std::size_t m = 0; m < s.count; m += 1 + s.count / 50) {
            const auto whole = a[m], wanted = c[m], all = c.matrix_of(got, m);
            reference<T> x(s.n, 1);
            for (std::size_t k = 0; k < s.n; ++k)
                x(k, 0) = all(k, 0);
            CHECK((whole.adjoint() * (whole * x - wanted)).norm() <=
                  tolerance<T>(rows + s.n) * whole.norm() * (whole.norm() * x.norm() + wanted.norm()));
        }
    }
}

TEST_CASE_TEMPLATE("triangular equations of several blocks of rows", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    gpu_fixture f;
    constexpr std::size_t count = 100;
    for (const std::size_t n : {65, 130, 300})
        for (const auto side : test::every_side)
            for (const auto uplo : test::every_uplo)
                for (const auto trans : test::every_transpose) {
                    INFO("n ", n, ", side ", int(side), ", uplo ", int(uplo), ", trans ", int(trans));
                    const bool left = side == blas::side::left;
                    batch<T> a(n, n, count, {3, 1}, random);
                    for (std::size_t m = 0; m < count; ++m)
                        for (std::size_t j = 0; j < n; ++j)
                            for (std::size_t i = 0; i < n; ++i)
                                if (i == j)
                                    a(m, i, j) += T(2);
                                else if (test::in_triangle(uplo, i, j))
                                    a(m, i, j) /= T(static_cast<blas::real_part<T>>(n));
                                else
                                    a(m, i, j) = test::poison<T>();
                    const batch<T> b(left ? n : 5, left ? 5 : n, count, {1, 2}, random);
                    const auto matrices = f.upload(a.data), right = f.upload(b.data);
                    blas::trsm_batched<T> op{.a = a.in(matrices),
                                             .b = b.in(right),
                                             .m = b.rows,
                                             .n = b.cols,
                                             .batch = count,
                                             .stride_a = a.stride,
                                             .stride_b = b.stride,
                                             .alpha = test::factor<T>(-0.5),
                                             .side = side,
                                             .uplo = uplo,
                                             .trans = trans,
                                             .lda = a.ld,
                                             .ldb = b.ld};
                    REQUIRE(f.exec(op));
                    auto got = f.download(right);
                    CHECK(b.gaps_remain(got));
                    for (std::size_t m = 0; m < count; m += 33) {
                        auto whole = a[m];
                        for (std::size_t j = 0; j < n; ++j)
                            for (std::size_t i = 0; i < n; ++i)
                                if (!test::in_triangle(uplo, i, j))
                                    whole(i, j) = 0;
                        const auto triangle = taken(whole, trans), x = b.matrix_of(got, m);
                        auto wanted = b[m];
                        for (auto& e : wanted.data)
                            e *= test::number(op.alpha);
                        CHECK(((left ? triangle * x : x * triangle) - wanted).norm() <=
                              tolerance<T>(n) * triangle.norm() * x.norm());
                    }
                    op.alpha = T(0);
                    REQUIRE(f.exec(op));
                    got = f.download(right);
                    for (std::size_t m = 0; m < count; ++m)
                        CHECK(b.matrix_of(got, m).norm() == 0);
                }
}

TEST_CASE_TEMPLATE("every op on tables of addresses is part of the graph of a plan", T, float, double,
                   std::complex<float>, std::complex<double>)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    gpu_fixture f;
    constexpr std::size_t count = 3;
    for (const std::size_t n : {1, 2, 16, 17, 32, 33, 96}) {
        CAPTURE(n);
        const std::size_t stride = n * n, all = stride * count;
        plan_builder p("batches");
        const auto given = p.input<T>(all), simple = p.input<T>(all), sides = p.input<T>(all);
        const auto lu = p.scratch<T>(all), plain = p.scratch<T>(all), squares = p.scratch<T>(all);
        const auto pivots = p.scratch<std::int32_t>(n * count);
        const auto qr = p.output<T>(all), tau = p.output<T>(n * count);
        const auto inverse = p.output<T>(all), x = p.output<T>(all);
        const auto plain_inverse = p.output<T>(all), plain_x = p.output<T>(all);
        const auto least = p.output<T>(all), t = p.output<T>(all);
        const auto lu_info = p.output<std::int32_t>(count), plain_info = p.output<std::int32_t>(count);
        const auto inverse_info = p.output<std::int32_t>(count), plain_inverse_info = p.output<std::int32_t>(count);
        const auto least_info = p.output<std::int32_t>(count);
        p.add(memory::copy<T>{given, lu});
        p.add(blas::getrf_batched<T>{
            .a = lu, .pivots = pivots, .info = lu_info, .n = n, .batch = count, .stride_a = stride});
        p.add(blas::getri_batched<T>{.a = lu,
                                     .pivots = pivots,
                                     .c = inverse,
                                     .info = inverse_info,
                                     .n = n,
                                     .batch = count,
                                     .stride_a = stride,
                                     .stride_c = stride});
        p.add(memory::copy<T>{sides, x});
        p.add(blas::getrs_batched<T>{.a = lu,
                                     .pivots = pivots,
                                     .b = x,
                                     .n = n,
                                     .nrhs = n,
                                     .batch = count,
                                     .stride_a = stride,
                                     .stride_b = stride,
                                     .trans = blas::transpose::conjugate});
        p.add(memory::copy<T>{simple, plain});
        p.add(
            blas::getrf_nopivot_batched<T>{.a = plain, .info = plain_info, .n = n, .batch = count, .stride_a = stride});
        p.add(blas::getri_nopivot_batched<T>{.a = plain,
                                             .c = plain_inverse,
                                             .info = plain_inverse_info,
                                             .n = n,
                                             .batch = count,
                                             .stride_a = stride,
                                             .stride_c = stride});
        p.add(memory::copy<T>{sides, plain_x});
        p.add(blas::getrs_nopivot_batched<T>{
            .a = plain, .b = plain_x, .n = n, .nrhs = n, .batch = count, .stride_a = stride, .stride_b = stride});
        p.add(memory::copy<T>{given, qr});
        p.add(blas::geqrf_batched<T>{.a = qr, .tau = tau, .m = n, .n = n, .batch = count, .stride_a = stride});
        p.add(memory::copy<T>{given, squares});
        p.add(memory::copy<T>{sides, least});
        p.add(blas::gels_batched<T>{.a = squares,
                                    .c = least,
                                    .info = least_info,
                                    .m = n,
                                    .n = n,
                                    .nrhs = n,
                                    .batch = count,
                                    .stride_a = stride,
                                    .stride_c = stride});
        p.add(memory::copy<T>{sides, t});
        p.add(blas::trsm_batched<T>{.a = qr,
                                    .b = t,
                                    .m = n,
                                    .n = n,
                                    .batch = count,
                                    .stride_a = stride,
                                    .stride_b = stride,
                                    .side = blas::side::right,
                                    .uplo = blas::uplo::upper,
                                    .trans = blas::transpose::yes});
        const auto described = p.finish();
        REQUIRE_MESSAGE(described, described.error().message());
        const auto loaded = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(loaded, loaded.error().message());
        for (int run = 0; run < 2; ++run) {
            const auto a = dominant<T>(n, count, true, random), d = dominant<T>(n, count, false, random);
            const batch<T> s(n, n, count, {0, 0}, random);
            const auto a_data = elements_of(a), d_data = elements_of(d), s_data = elements_of(s);
            results<T> got_qr(n, count), got_inverse(n, count), got_x(n, count), got_plain_inverse(n, count),
                got_plain_x(n, count), got_least(n, count), got_t(n, count);
            std::vector<T> got_tau(n * count);
            std::vector<std::vector<std::int32_t>> info(5, std::vector<std::int32_t>(count, unset));
            const auto done = test::await(
                f.io, loaded.value().async_run(from(a_data), from(d_data), from(s_data), to(got_qr.data), to(got_tau),
                                               to(got_inverse.data), to(got_x.data), to(got_plain_inverse.data),
                                               to(got_plain_x.data), to(got_least.data), to(got_t.data), to(info[0]),
                                               to(info[1]), to(info[2]), to(info[3]), to(info[4])));
            REQUIRE_MESSAGE(done, done.error().message());
            for (const auto& one : info)
                CHECK(one == std::vector<std::int32_t>(count));
            const auto one = reference<T>::identity(n);
            for (std::size_t m = 0; m < count; ++m) {
                const auto within = [n](const reference<T>& left, const reference<T>& right,
                                        const reference<T>& wanted) {
                    return (left * right - wanted).norm() <=
                           tolerance<T>(2 * n) * (left.norm() * right.norm() + wanted.norm());
                };
                CHECK(within(a[m], got_inverse[m], one));
                CHECK(within(a[m].adjoint(), got_x[m], s[m]));
                CHECK(within(d[m], got_plain_inverse[m], one));
                CHECK(within(d[m], got_plain_x[m], s[m]));
                CHECK(within(a[m], got_least[m], s[m]));
                const auto upper = test::upper_of(got_qr[m]);
                CHECK((test::times_q(got_qr[m], got_tau.data() + m * n, upper) - a[m]).norm() <=
                      tolerance<T>(2 * n) * a[m].norm());
                CHECK(within(got_t[m], taken(upper, blas::transpose::yes), s[m]));
            }
        }
    }
}

TEST_SUITE_END();
