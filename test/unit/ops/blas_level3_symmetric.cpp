#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level3_symmetric.hpp>

#include <doctest/doctest.h>

namespace test_ops_blas_level3_symmetric {

namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::engine;
using test::matrix;
using test::wide;

struct sides {
    std::size_t first, second;
};

constexpr sides every_size[] = {{1, 1}, {3, 5}, {17, 4}, {1, 9}, {9, 1}, {33, 20}};

/// symm and hemm, whose fields are the same.
template <class Op>
void check_product(wide<typename Op::value_type> (*element)(const matrix<typename Op::value_type>&, blas::uplo,
                                                            std::size_t, std::size_t))
{
    using T = typename Op::value_type;
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto side : test::every_side)
                for (const auto uplo : test::every_uplo)
                    for (const std::size_t extra : {0, 3})
                        for (const auto& s : test::every_scale) {
                            const std::size_t m = size.first, n = size.second;
                            INFO("m ", m, ", n ", n, ", side ", int(side), ", uplo ", int(uplo), ", extra ", extra,
                                 ", alpha ", s.alpha, ", beta ", s.beta);
                            const std::size_t order = side == blas::side::left ? m : n;
                            const auto a = test::one_triangle<T>(order, uplo, extra, s.alpha, random);
                            const auto b = test::operand<T>(m, n, extra, s.alpha, random);
                            const auto c = test::operand<T>(m, n, extra, s.beta, random);
                            const auto da = f.upload(a.data), db = f.upload(b.data), dc = f.upload(c.data);
                            const T alpha = test::factor<T>(s.alpha), beta = test::factor<T>(s.beta);
                            REQUIRE(test::exec_listed(f, Op{.a = a.in(da),
                                                            .b = b.in(db),
                                                            .c = c.in(dc),
                                                            .m = m,
                                                            .n = n,
                                                            .alpha = alpha,
                                                            .beta = beta,
                                                            .side = side,
                                                            .uplo = uplo,
                                                            .lda = a.ld_field(),
                                                            .ldb = b.ld_field(),
                                                            .ldc = c.ld_field()}));
                            CHECK(c.difference(f.download(dc), order + 1, [&](std::size_t i, std::size_t j) {
                                auto e = test::kept(c, test::number(beta), i, j);
                                for (std::size_t p = 0; p < order && s.alpha != 0; ++p)
                                    e.add(test::number(alpha) * (side == blas::side::left
                                                                     ? element(a, uplo, i, p) * b.at(p, j)
                                                                     : b.at(i, p) * element(a, uplo, p, j)));
                                return e;
                            }) == "");
                        }
    });
}

enum class symmetry { symmetric, hermitian };

/// The transposes that an update accepts.
template <class T>
bool accepts(transpose t, symmetry kind)
{
    if (t == transpose::no || blas::real<T>)
        return true;
    return t == (kind == symmetry::symmetric ? transpose::yes : transpose::conjugate);
}

/// Runs an update with all sizes, triangles, transposes and factors. `products` is 1 for alpha * A * B', and 2 if
/// alpha' * B * A' is added; with one factor, B is A.
template <class Op>
void check_update(symmetry kind, int products)
{
    using T = typename Op::value_type;
    constexpr bool two_factors = requires(Op& o) { o.b; };
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto trans : test::every_transpose)
                for (const auto uplo : test::every_uplo)
                    for (const std::size_t extra : {0, 3})
                        for (const auto& s : test::every_scale) {
                            if (!accepts<T>(trans, kind))
                                continue;
                            const std::size_t n = size.first, k = size.second;
                            INFO("n ", n, ", k ", k, ", trans ", int(trans), ", uplo ", int(uplo), ", extra ", extra,
                                 ", alpha ", s.alpha, ", beta ", s.beta);
                            const bool plain = trans == transpose::no;
                            const std::size_t rows = plain ? n : k, cols = plain ? k : n;
                            const auto a = test::operand<T>(rows, cols, extra, s.alpha, random);
                            const auto b = two_factors ? test::operand<T>(rows, cols, extra, s.alpha, random) : a;
                            auto c = test::one_triangle<T>(n, uplo, extra, s.beta, random);
                            if (kind == symmetry::hermitian)
                                for (std::size_t i = 0; i < n; ++i)
                                    c(i, i) = T(wide<T>(std::real(c.at(i, i))));
                            const auto da = f.upload(a.data), db = f.upload(b.data), dc = f.upload(c.data);
                            Op op{};
                            op.a = a.in(da);
                            op.c = c.in(dc);
                            op.n = n;
                            op.k = k;
                            op.uplo = uplo;
                            op.trans = trans;
                            op.lda = a.ld_field();
                            op.ldc = c.ld_field();
                            if constexpr (two_factors) {
                                op.b = b.in(db);
                                op.ldb = b.ld_field();
                            }
                            op.alpha = test::factor<decltype(op.alpha)>(s.alpha);
                            op.beta = test::factor<decltype(op.beta)>(s.beta);
                            REQUIRE(test::exec_listed(f, op));
                            const wide<T> alpha = test::number(op.alpha);
                            const auto turn = [kind](const wide<T>& value) {
                                return kind == symmetry::hermitian ? wide<T>(test::conjugate(value)) : value;
                            };
                            const auto wanted = [&](std::size_t i, std::size_t j) {
                                auto e = test::kept(c, wide<T>(test::number(op.beta)), i, j);
                                for (std::size_t p = 0; p < k && s.alpha != 0; ++p) {
                                    e.add(alpha * test::taken(a, trans, i, p) * turn(test::taken(b, trans, j, p)));
                                    if (products == 2)
                                        e.add(turn(alpha) * test::taken(b, trans, i, p) *
                                              turn(test::taken(a, trans, j, p)));
                                }
                                return e;
                            };
                            const auto got = f.download(dc);
                            CHECK(c.difference(got, 2 * k + 1, wanted, [&](std::size_t i, std::size_t j) {
                                return test::in_triangle(uplo, i, j);
                            }) == "");
                            for (std::size_t i = 0; i < n && kind == symmetry::hermitian; ++i)
                                CHECK(std::imag(test::number(got[c.place(i, i)])) == 0);
                        }
    });
}

} // namespace

TEST_SUITE_BEGIN("blas level 3, symmetric");

#define COACCEL_DENSE float, double, std::complex<float>, std::complex<double>
#define COACCEL_COMPLEX std::complex<float>, std::complex<double>

TEST_CASE_TEMPLATE("symm multiplies a symmetric matrix, of which it reads one triangle", T, COACCEL_DENSE)
{
    check_product<blas::symm<T>>(&test::symmetric<T>);
}

TEST_CASE_TEMPLATE("hemm multiplies a Hermitian matrix, of which it reads one triangle", T, COACCEL_COMPLEX)
{
    check_product<blas::hemm<T>>(&test::hermitian<T>);
}

TEST_CASE_TEMPLATE("syrk updates one triangle with a product of one factor", T, COACCEL_DENSE)
{
    check_update<blas::syrk<T>>(symmetry::symmetric, 1);
}

TEST_CASE_TEMPLATE("herk updates one triangle of a Hermitian matrix with a product of one factor", T, COACCEL_COMPLEX)
{
    check_update<blas::herk<T>>(symmetry::hermitian, 1);
}

TEST_CASE_TEMPLATE("syr2k updates one triangle with both products of two factors", T, COACCEL_DENSE)
{
    check_update<blas::syr2k<T>>(symmetry::symmetric, 2);
}

TEST_CASE_TEMPLATE("her2k updates one triangle of a Hermitian matrix with both products of two factors", T,
                   COACCEL_COMPLEX)
{
    check_update<blas::her2k<T>>(symmetry::hermitian, 2);
}

TEST_CASE_TEMPLATE("syrkx updates one triangle with a product of two factors", T, COACCEL_DENSE)
{
    check_update<blas::syrkx<T>>(symmetry::symmetric, 1);
}

TEST_CASE("factors of a symmetric update may be one buffer, and the result must be another one")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<double>(16, 1)), w = f.upload(std::vector<double>(16, 0));
        CHECK(f.error_of(blas::syr2k<double>{.a = v, .b = v, .c = w, .n = 4, .k = 4}) == error_code());
        CHECK(f.download(w)[3] == 8);
        CHECK(f.error_of(blas::syr2k<double>{.a = v, .b = w, .c = w, .n = 4, .k = 4}) == errc::overlap);
        CHECK(f.error_of(blas::syrk<double>{.a = v, .c = v, .n = 4, .k = 4}) == errc::overlap);
        CHECK(f.error_of(blas::symm<double>{.a = v, .b = w, .c = w, .m = 4, .n = 4}) == errc::overlap);
        CHECK(f.error_of(blas::symm<double>{.a = v, .b = v, .c = w, .m = 4, .n = 4}) == error_code());
        CHECK(f.download(w)[0] == 4);
    }
}

#undef COACCEL_DENSE
#undef COACCEL_COMPLEX

TEST_SUITE_END();

} // namespace test_ops_blas_level3_symmetric
