#include "gpu.hpp"
#include "support/batches.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <cstdint>
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
        const auto info = f.alloc<std::int32_t>(s.count);
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
        const auto info = f.alloc<std::int32_t>(s.count);
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
        const auto got = f.download(right);
        for (std::size_t m = 0; m < s.count; m += 1 + s.count / 50) {
            const auto whole = a[m], wanted = c[m], all = c.matrix_of(got, m);
            reference<T> x(s.n, 1);
            for (std::size_t k = 0; k < s.n; ++k)
                x(k, 0) = all(k, 0);
            CHECK((whole.adjoint() * (whole * x - wanted)).norm() <=
                  tolerance<T>(rows * s.n) * whole.norm() * (whole.norm() * x.norm() + wanted.norm()));
        }
    }
}

TEST_SUITE_END();
