#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level2_triangular.hpp>

#include <doctest/doctest.h>

namespace test_ops_blas_level2_triangular {

namespace {

using namespace coaccel;
using test::device_fixture;
using test::engine;
using test::wide;

/// Runs an op with all sizes, triangles, transposes, diagonals and increments, and passes the operands to
/// `check(op, a, x, got)`.
template <class Op, class Check>
void for_all(Check check)
{
    using T = typename Op::value_type;
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const std::size_t n : {1, 2, 7, 40})
            for (const auto uplo : test::every_uplo)
                for (const auto trans : test::every_transpose)
                    for (const auto diag : test::every_diag)
                        for (const std::int64_t inc : {1, 3, -1, -2}) {
                            INFO("n ", n, ", uplo ", int(uplo), ", trans ", int(trans), ", diag ", int(diag), ", incx ",
                                 inc);
                            const auto a = test::well_conditioned<T>(n, uplo, diag, inc == 1 ? 0 : 3, 1, random);
                            const test::vector<T> x(n, inc, random);
                            const auto da = f.upload(a.data), dx = f.upload(x.data);
                            const Op op{.a = a.in(da),
                                        .x = x.in(dx),
                                        .n = n,
                                        .uplo = uplo,
                                        .trans = trans,
                                        .diag = diag,
                                        .lda = a.ld_field(),
                                        .incx = inc};
                            REQUIRE(test::exec_listed(f, op));
                            check(op, a, x, f.download(dx));
                        }
    });
}

/// Element i of op(A) * x.
template <class Op, class T>
test::expectation_of<wide<T>> product(const Op& op, const test::matrix<T>& a, const test::vector<T>& x, std::size_t i)
{
    test::expectation_of<wide<T>> e;
    for (std::size_t p = 0; p < op.n; ++p)
        e.add(test::triangular(a, op.uplo, op.trans, op.diag, i, p) * x.at(p));
    return e;
}

} // namespace

TEST_SUITE_BEGIN("blas level 2, triangular");

TEST_CASE_TEMPLATE("trmv multiplies a triangular matrix and a vector", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    for_all<blas::trmv<T>>(
        [](const auto& op, const test::matrix<T>& a, const test::vector<T>& x, const std::vector<T>& got) {
            CHECK(x.difference(got, op.n + 1, [&](std::size_t i) { return product(op, a, x, i); }) == "");
        });
}

TEST_CASE_TEMPLATE("trsv solves an equation with a triangular matrix", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    for_all<blas::trsv<T>>(
        [](const auto& op, const test::matrix<T>& a, const test::vector<T>& b, const std::vector<T>& got) {
            auto x = b;
            x.data = got;
            CHECK(b.difference(got, 0, [&](std::size_t i) { return test::expectation_of<wide<T>>{x.at(i), 0}; }) == "");
            // The residual op(A) * x - b, whose bound is proportional to the magnitudes in this sum.
            for (std::size_t i = 0; i < op.n; ++i) {
                const auto sum = product(op, a, x, i);
                CHECK(test::close<T>(sum.value, {b.at(i), sum.magnitude + std::abs(b.at(i))}, op.n + 1));
            }
        });
}

TEST_CASE("the operands must not overlap")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(20, 1));
        const auto a = v.subspan(0, 16), x = v.subspan(16, 4), last_of_a = v.subspan(15, 4);
        CHECK(f.error_of(blas::trmv<float>{.a = a, .x = last_of_a, .n = 4}) == errc::overlap);
        CHECK(f.error_of(blas::trsv<float>{.a = a, .x = last_of_a, .n = 4}) == errc::overlap);
        CHECK(f.error_of(blas::trmv<float>{.a = a, .x = x, .n = 4}) == error_code());
        CHECK(f.download(x) == std::vector<float>{1, 2, 3, 4});
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level2_triangular
