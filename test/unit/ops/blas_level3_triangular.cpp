#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level3_triangular.hpp>

#include <doctest/doctest.h>

namespace test_ops_blas_level3_triangular {

namespace {

using namespace coaccel;
using test::device_fixture;
using test::engine;
using test::matrix;
using test::wide;

struct sides {
    std::size_t m, n;
};

constexpr sides every_size[] = {{1, 1}, {3, 5}, {17, 4}, {1, 9}, {9, 1}, {33, 20}};

/// Runs an op with all sizes, sides, triangles, transposes and diagonals, and passes the matrices to
/// `check(op, a, b, got, extra)`.
template <class Op, class Check>
void for_all(Check check)
{
    using T = typename Op::value_type;
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto side : test::every_side)
                for (const auto uplo : test::every_uplo)
                    for (const auto trans : test::every_transpose)
                        for (const auto diag : test::every_diag)
                            for (const double by : {1.0, -0.5, 0.0}) {
                                const std::size_t m = size.m, n = size.n;
                                INFO("m ", m, ", n ", n, ", side ", int(side), ", uplo ", int(uplo), ", trans ",
                                     int(trans), ", diag ", int(diag), ", alpha ", by);
                                const std::size_t extra = by == 1.0 ? 0 : 3;
                                const std::size_t order = side == blas::side::left ? m : n;
                                const auto a = test::well_conditioned<T>(order, uplo, diag, extra, by, random);
                                const auto b = test::operand<T>(m, n, extra, by, random);
                                const auto da = f.upload(a.data), db = f.upload(b.data);
                                const Op op{.a = a.in(da),
                                            .b = b.in(db),
                                            .m = m,
                                            .n = n,
                                            .alpha = test::factor<T>(by),
                                            .side = side,
                                            .uplo = uplo,
                                            .trans = trans,
                                            .diag = diag,
                                            .lda = a.ld_field(),
                                            .ldb = b.ld_field()};
                                REQUIRE(test::exec_listed(f, op));
                                check(op, a, b, f.download(db));
                            }
    });
}

/// op(A) * x or x * op(A), at (i, j).
template <class Op, class T>
test::expectation_of<wide<T>> product(const Op& op, const matrix<T>& a, const matrix<T>& x, const wide<T>& alpha,
                                      std::size_t i, std::size_t j)
{
    test::expectation_of<wide<T>> e;
    const bool left = op.side == blas::side::left;
    for (std::size_t p = 0; p < (left ? op.m : op.n) && alpha != 0.0; ++p)
        e.add(alpha * (left ? test::triangular(a, op.uplo, op.trans, op.diag, i, p) * x.at(p, j)
                            : x.at(i, p) * test::triangular(a, op.uplo, op.trans, op.diag, p, j)));
    return e;
}

} // namespace

TEST_SUITE_BEGIN("blas level 3, triangular");

TEST_CASE_TEMPLATE("trmm multiplies a triangular matrix", T, float, double, std::complex<float>, std::complex<double>)
{
    for_all<blas::trmm<T>>([](const auto& op, const matrix<T>& a, const matrix<T>& b, const std::vector<T>& got) {
        CHECK(b.difference(got, a.rows + 1, [&](std::size_t i, std::size_t j) {
            return product(op, a, b, test::number(op.alpha), i, j);
        }) == "");
    });
}

TEST_CASE_TEMPLATE("trsm solves equations with a triangular matrix", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    for_all<blas::trsm<T>>([](const auto& op, const matrix<T>& a, const matrix<T>& b, const std::vector<T>& got) {
        auto x = b;
        x.data = got;
        // The residual op(A) * X - alpha * B, whose bound is proportional to the magnitudes in this sum.
        CHECK(b.difference(got, 0, [&](std::size_t i, std::size_t j) {
            return test::expectation_of<wide<T>>{x.at(i, j), 0};
        }) == "");
        for (std::size_t j = 0; j < op.n; ++j)
            for (std::size_t i = 0; i < op.m; ++i) {
                const auto sum = product(op, a, x, wide<T>(1), i, j);
                auto wanted = test::expectation_of<wide<T>>{0, sum.magnitude};
                if (op.alpha != T(0))
                    wanted.add(test::number(op.alpha) * b.at(i, j));
                if (op.alpha == T(0))
                    CHECK(x.at(i, j) == 0.0);
                else
                    CHECK(test::close<T>(sum.value, wanted, a.rows + 1));
            }
    });
}

TEST_CASE("the operands of triangular ops must not overlap")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(20, 1));
        CHECK(f.error_of(blas::trmm<float>{.a = v.subspan(0, 16), .b = v.subspan(15, 4), .m = 4, .n = 1}) ==
              errc::overlap);
        CHECK(f.error_of(blas::trsm<float>{.a = v.subspan(0, 16), .b = v.subspan(15, 4), .m = 4, .n = 1}) ==
              errc::overlap);
        CHECK(f.error_of(blas::trsm<float>{.a = v.subspan(0, 16), .b = v.subspan(16, 4), .m = 4, .n = 1}) ==
              error_code());
        CHECK(f.download(v)[16] == 1);
        CHECK(f.download(v)[17] == 0);
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level3_triangular
