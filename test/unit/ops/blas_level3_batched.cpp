#include "support/batches.hpp"
#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level3_batched.hpp>

#include <doctest/doctest.h>

namespace test_ops_blas_level3_batched {

namespace {

using namespace coaccel;
using test::batch;
using test::device_fixture;
using test::engine;
using test::reference;
using test::wide;

struct sides {
    std::size_t m, n;
};

constexpr sides every_size[] = {{1, 1}, {3, 5}, {9, 1}, {17, 4}};

/// The matrix op(A) of which an op reads one triangle.
template <class T>
reference<T> triangle(const blas::trsm_batched<T>& op, const reference<T>& a)
{
    reference<T> made(a.rows, a.cols);
    for (std::size_t j = 0; j < a.cols; ++j)
        for (std::size_t i = 0; i < a.rows; ++i) {
            const auto row = op.trans == blas::transpose::no ? i : j, column = op.trans == blas::transpose::no ? j : i;
            if (i == j && op.diag == blas::diag::unit)
                made(i, j) = 1;
            else if (test::in_triangle(op.uplo, row, column))
                made(i, j) = op.trans == blas::transpose::conjugate ? test::conjugate(a(row, column)) : a(row, column);
        }
    return made;
}

/// Triangular matrices with which equations are well conditioned. What must not be read is poisoned.
template <class T>
batch<T> triangles(std::size_t n, std::size_t count, test::batch_gaps gaps, blas::uplo u, blas::diag d, engine& random)
{
    batch<T> made(n, n, count, gaps, random);
    for (std::size_t m = 0; m < count; ++m)
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < n; ++i)
                if (i == j)
                    made(m, i, j) = d == blas::diag::unit ? test::poison<T>() : T(T(2) + made(m, i, j));
                else if (test::in_triangle(u, i, j))
                    made(m, i, j) /= T(static_cast<blas::real_part<T>>(n));
                else
                    made(m, i, j) = test::poison<T>();
    return made;
}

/// One combination of the fields of trsm_batched.
struct kind_of_equation {
    blas::side side;
    blas::uplo uplo;
    blas::transpose trans;
    blas::diag diag;
};

/// Solves `count` equations with B of m by n. With gaps, they have one matrix A.
template <class T>
void check_equations(device_fixture& f, engine& random, std::size_t m, std::size_t n, std::size_t count,
                     const test::batch_gaps& gaps, const kind_of_equation& k)
{
    INFO("m ", m, ", n ", n, ", side ", int(k.side), ", uplo ", int(k.uplo), ", trans ", int(k.trans), ", diag ",
         int(k.diag), ", gap ", gaps.ld, ", batch ", count);
    const bool one_for_all = gaps.ld != 0;
    const auto a =
        triangles<T>(k.side == blas::side::left ? m : n, one_for_all ? 1 : count, gaps, k.uplo, k.diag, random);
    const batch<T> b(m, n, count, gaps, random);
    const auto da = f.upload(a.data), db = f.upload(b.data);
    const blas::trsm_batched<T> op{.a = a.in(da),
                                   .b = b.in(db),
                                   .m = m,
                                   .n = n,
                                   .batch = count,
                                   .stride_a = one_for_all ? 0 : a.stride,
                                   .stride_b = b.stride_field(),
                                   .alpha = test::factor<T>(-0.5),
                                   .side = k.side,
                                   .uplo = k.uplo,
                                   .trans = k.trans,
                                   .diag = k.diag,
                                   .lda = a.ld_field(),
                                   .ldb = b.ld_field()};
    REQUIRE(test::exec_listed(f, op));
    const auto got = f.download(db);
    CHECK(b.gaps_remain(got));
    for (std::size_t i = 0; i < count; ++i) {
        const auto taken = triangle(op, a[one_for_all ? 0 : i]);
        const auto x = b.matrix_of(got, i);
        auto wanted = b[i];
        for (auto& e : wanted.data)
            e *= test::number(op.alpha);
        const auto product = k.side == blas::side::left ? taken * x : x * taken;
        CHECK((product - wanted).norm() <= test::tolerance<T>(taken.rows) * taken.norm() * x.norm());
    }
}

} // namespace

TEST_SUITE_BEGIN("blas level 3, batches");

TEST_CASE_TEMPLATE("trsm_batched solves equations with triangular matrices", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto side : test::every_side)
                for (const auto uplo : test::every_uplo)
                    for (const auto trans : test::every_transpose)
                        for (const auto diag : test::every_diag)
                            for (const auto gaps : test::every_gap)
                                for (const std::size_t count : {1, 5})
                                    check_equations<T>(f, random, size.m, size.n, count, gaps,
                                                       {side, uplo, trans, diag});
    });
}

// cuBLAS divides the triangle into blocks of 64 rows.
TEST_CASE_TEMPLATE("trsm_batched solves equations of several blocks", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([](device_fixture& f, engine& random) {
        for (const std::size_t order : {65, 130})
            for (const auto side : test::every_side)
                for (const auto uplo : test::every_uplo)
                    for (const auto trans : test::every_transpose) {
                        const bool left = side == blas::side::left;
                        check_equations<T>(f, random, left ? order : 3, left ? 3 : order, 2, {0, 0},
                                           {side, uplo, trans, blas::diag::non_unit});
                    }
    });
}

TEST_CASE("with alpha zero, trsm_batched reads nothing")
{
    test::on_every_device([](device_fixture& f, engine&) {
        for (const std::size_t order : {3, 65, 130})
            for (const auto side : test::every_side)
                for (const auto trans : test::every_transpose) {
                    INFO("order ", order, ", side ", int(side), ", trans ", int(trans));
                    const bool left = side == blas::side::left;
                    const batch<float> a(order, order, 2, {0, 0}), b(left ? order : 2, left ? 2 : order, 2, {0, 0});
                    const auto da = f.upload(a.data), db = f.upload(b.data);
                    REQUIRE(f.exec(blas::trsm_batched<float>{.a = a.in(da),
                                                             .b = b.in(db),
                                                             .m = b.rows,
                                                             .n = b.cols,
                                                             .batch = 2,
                                                             .stride_a = a.stride,
                                                             .stride_b = b.stride,
                                                             .alpha = 0,
                                                             .side = side,
                                                             .trans = trans}));
                    const auto got = f.download(db);
                    for (std::size_t i = 0; i < 2; ++i)
                        CHECK(b.matrix_of(got, i).norm() == 0);
                }
    });
}

TEST_CASE("the operands of trsm_batched must not overlap")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(20, 1));
        CHECK(f.error_of(blas::trsm_batched<float>{.a = v.subspan(0, 8),
                                                   .b = v.subspan(7, 4),
                                                   .m = 2,
                                                   .n = 1,
                                                   .batch = 2,
                                                   .stride_a = 4,
                                                   .stride_b = 2}) == errc::overlap);
        CHECK(f.download(v) == std::vector<float>(20, 1));
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level3_batched
