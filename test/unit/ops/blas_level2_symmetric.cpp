#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level2_symmetric.hpp>

#include <doctest/doctest.h>

namespace test_ops_blas_level2_symmetric {

namespace {

using namespace coaccel;
using test::device_fixture;
using test::engine;
using test::wide;

struct steps {
    std::int64_t x, y;
};

constexpr steps increments[] = {{1, 1}, {2, 3}, {-1, 1}, {1, -2}, {-3, -1}};

constexpr std::size_t every_size[] = {1, 2, 7, 40};

/// symv and hemv, whose fields are the same.
template <class Op>
void check_product(wide<typename Op::value_type> (*element)(const test::matrix<typename Op::value_type>&, blas::uplo,
                                                            std::size_t, std::size_t))
{
    using T = typename Op::value_type;
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const std::size_t n : every_size)
            for (const auto uplo : test::every_uplo)
                for (const auto& inc : increments)
                    for (const auto& s : test::every_scale) {
                        INFO("n ", n, ", uplo ", int(uplo), ", incx ", inc.x, ", incy ", inc.y, ", alpha ", s.alpha,
                             ", beta ", s.beta);
                        const auto a = test::one_triangle<T>(n, uplo, inc.x == 1 ? 0 : 3, s.alpha, random);
                        const auto x = test::vector_operand<T>(n, inc.x, s.alpha, random);
                        const auto y = test::vector_operand<T>(n, inc.y, s.beta, random);
                        const auto da = f.upload(a.data), dx = f.upload(x.data), dy = f.upload(y.data);
                        const T alpha = test::factor<T>(s.alpha), beta = test::factor<T>(s.beta);
                        REQUIRE(test::exec_listed(f, Op{.a = a.in(da),
                                                        .x = x.in(dx),
                                                        .y = y.in(dy),
                                                        .n = n,
                                                        .alpha = alpha,
                                                        .beta = beta,
                                                        .uplo = uplo,
                                                        .lda = a.ld_field(),
                                                        .incx = inc.x,
                                                        .incy = inc.y}));
                        CHECK(y.difference(f.download(dy), n + 1, [&](std::size_t i) {
                            test::expectation_of<wide<T>> e;
                            if (s.beta != 0)
                                e.add(test::number(beta) * y.at(i));
                            for (std::size_t p = 0; p < n && s.alpha != 0; ++p)
                                e.add(test::number(alpha) * element(a, uplo, i, p) * x.at(p));
                            return e;
                        }) == "");
                    }
    });
}

enum class symmetry { symmetric, hermitian };

/// The updates, by one vector or two.
template <class Op>
void check_update(symmetry kind)
{
    using T = typename Op::value_type;
    constexpr bool two = requires(Op& o) { o.y; };
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const std::size_t n : every_size)
            for (const auto uplo : test::every_uplo)
                for (const auto& inc : increments)
                    for (const double by : {1.0, -0.5, 0.0}) {
                        INFO("n ", n, ", uplo ", int(uplo), ", incx ", inc.x, ", incy ", inc.y, ", alpha ", by);
                        auto a = test::one_triangle<T>(n, uplo, inc.y == 1 ? 0 : 2, 1, random);
                        for (std::size_t i = 0; i < n && kind == symmetry::hermitian; ++i)
                            a(i, i) = T(wide<T>(std::real(a.at(i, i))));
                        const auto x = test::vector_operand<T>(n, inc.x, by, random);
                        const auto y = two ? test::vector_operand<T>(n, inc.y, by, random) : x;
                        const auto da = f.upload(a.data), dx = f.upload(x.data), dy = f.upload(y.data);
                        Op op{};
                        op.x = x.in(dx);
                        op.a = a.in(da);
                        op.n = n;
                        op.alpha = test::factor<decltype(op.alpha)>(by);
                        op.uplo = uplo;
                        op.lda = a.ld_field();
                        op.incx = inc.x;
                        if constexpr (two) {
                            op.y = y.in(dy);
                            op.incy = inc.y;
                        }
                        REQUIRE(test::exec_listed(f, op));
                        const wide<T> alpha = test::number(op.alpha);
                        const auto turn = [kind](const wide<T>& value) {
                            return kind == symmetry::hermitian ? wide<T>(test::conjugate(value)) : value;
                        };
                        const auto wanted = [&](std::size_t i, std::size_t j) {
                            test::expectation_of<wide<T>> e;
                            e.add(a.at(i, j));
                            if (by != 0)
                                e.add(alpha * x.at(i) * turn(y.at(j)));
                            if (by != 0 && two)
                                e.add(turn(alpha) * y.at(i) * turn(x.at(j)));
                            return e;
                        };
                        const auto got = f.download(da);
                        CHECK(a.difference(got, 4, wanted, [&](std::size_t i, std::size_t j) {
                            return test::in_triangle(uplo, i, j);
                        }) == "");
                        for (std::size_t i = 0; i < n && kind == symmetry::hermitian; ++i)
                            CHECK(std::imag(test::number(got[a.place(i, i)])) == 0);
                    }
    });
}

} // namespace

TEST_SUITE_BEGIN("blas level 2, symmetric");

#define COACCEL_DENSE float, double, std::complex<float>, std::complex<double>
#define COACCEL_COMPLEX std::complex<float>, std::complex<double>

TEST_CASE_TEMPLATE("symv multiplies a symmetric matrix and a vector", T, COACCEL_DENSE)
{
    check_product<blas::symv<T>>(&test::symmetric<T>);
}

TEST_CASE_TEMPLATE("hemv multiplies a Hermitian matrix and a vector", T, COACCEL_COMPLEX)
{
    check_product<blas::hemv<T>>(&test::hermitian<T>);
}

TEST_CASE_TEMPLATE("syr and syr2 update one triangle of a symmetric matrix", T, COACCEL_DENSE)
{
    check_update<blas::syr<T>>(symmetry::symmetric);
    check_update<blas::syr2<T>>(symmetry::symmetric);
}

TEST_CASE_TEMPLATE("her and her2 update one triangle of a Hermitian matrix", T, COACCEL_COMPLEX)
{
    check_update<blas::her<T>>(symmetry::hermitian);
    check_update<blas::her2<T>>(symmetry::hermitian);
}

#undef COACCEL_DENSE
#undef COACCEL_COMPLEX

TEST_CASE("vectors of an update may be one buffer, and the matrix must be another one")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(20, 1));
        const auto a = v.subspan(0, 16), x = v.subspan(16, 4), last_of_a = v.subspan(15, 4);
        CHECK(f.error_of(blas::syr2<float>{.x = x, .y = x, .a = a, .n = 4}) == error_code());
        CHECK(f.download(v)[3] == 3);
        CHECK(f.error_of(blas::syr2<float>{.x = x, .y = last_of_a, .a = a, .n = 4}) == errc::overlap);
        CHECK(f.error_of(blas::syr<float>{.x = last_of_a, .a = a, .n = 4}) == errc::overlap);
        CHECK(f.error_of(blas::symv<float>{.a = a, .x = x, .y = x, .n = 4}) == errc::overlap);
        CHECK(f.error_of(blas::symv<float>{.a = a, .x = last_of_a, .y = x, .n = 4}) == errc::overlap);
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level2_symmetric
