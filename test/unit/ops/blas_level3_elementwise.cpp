#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level3_elementwise.hpp>

#include <doctest/doctest.h>

namespace test_ops_blas_level3_elementwise {

namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::engine;
using test::wide;

struct sides {
    std::size_t m, n;
};

constexpr sides every_size[] = {{1, 1}, {3, 5}, {17, 4}, {1, 9}, {9, 1}, {33, 20}};

} // namespace

TEST_SUITE_BEGIN("blas level 3, elementwise");

TEST_CASE_TEMPLATE("geam adds, scales and transposes matrices", T, float, double, std::complex<float>,
                   std::complex<double>)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto ta : test::every_transpose)
                for (const auto tb : test::every_transpose)
                    for (const auto& s : test::every_scale) {
                        const std::size_t m = size.m, n = size.n;
                        INFO("m ", m, ", n ", n, ", trans_a ", int(ta), ", trans_b ", int(tb), ", alpha ", s.alpha,
                             ", beta ", s.beta);
                        const bool plain_a = ta == transpose::no, plain_b = tb == transpose::no;
                        const auto a = test::operand<T>(plain_a ? m : n, plain_a ? n : m, 2, s.alpha, random);
                        const auto b = test::operand<T>(plain_b ? m : n, plain_b ? n : m, 0, s.beta, random);
                        const test::matrix<T> c(m, n, s.beta == 0 ? 0 : 3);
                        const auto da = f.upload(a.data), db = f.upload(b.data), dc = f.upload(c.data);
                        const T alpha = test::factor<T>(s.alpha), beta = test::factor<T>(s.beta);
                        REQUIRE(test::exec_listed(f, blas::geam<T>{.a = a.in(da),
                                                                   .b = b.in(db),
                                                                   .c = c.in(dc),
                                                                   .m = m,
                                                                   .n = n,
                                                                   .alpha = alpha,
                                                                   .beta = beta,
                                                                   .trans_a = ta,
                                                                   .trans_b = tb,
                                                                   .lda = a.ld_field(),
                                                                   .ldb = b.ld_field(),
                                                                   .ldc = c.ld_field()}));
                        CHECK(c.difference(f.download(dc), 2, [&](std::size_t i, std::size_t j) {
                            test::expectation_of<wide<T>> e;
                            if (s.alpha != 0)
                                e.add(test::number(alpha) * test::taken(a, ta, i, j));
                            if (s.beta != 0)
                                e.add(test::number(beta) * test::taken(b, tb, i, j));
                            return e;
                        }) == "");
                    }
    });
}

TEST_CASE_TEMPLATE("dgmm multiplies rows or columns", T, float, double, std::complex<float>, std::complex<double>)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& size : every_size)
            for (const auto side : test::every_side)
                for (const std::int64_t inc : {1, 3, -1, -2})
                    for (const std::size_t extra : {0, 2}) {
                        const std::size_t m = size.m, n = size.n;
                        INFO("m ", m, ", n ", n, ", side ", int(side), ", incx ", inc, ", extra ", extra);
                        const test::matrix<T> a(m, n, extra, random), c(m, n, 2 - extra);
                        const test::vector<T> x(side == blas::side::left ? m : n, inc, random);
                        const auto da = f.upload(a.data), dx = f.upload(x.data), dc = f.upload(c.data);
                        REQUIRE(test::exec_listed(f, blas::dgmm<T>{.a = a.in(da),
                                                                   .x = x.in(dx),
                                                                   .c = c.in(dc),
                                                                   .m = m,
                                                                   .n = n,
                                                                   .side = side,
                                                                   .lda = a.ld_field(),
                                                                   .incx = inc,
                                                                   .ldc = c.ld_field()}));
                        CHECK(c.difference(f.download(dc), 1, [&](std::size_t i, std::size_t j) {
                            test::expectation_of<wide<T>> e;
                            e.add(a.at(i, j) * x.at(side == blas::side::left ? i : j));
                            return e;
                        }) == "");
                    }
    });
}

TEST_CASE("the matrices that geam adds may be one buffer, and the sum must be another one")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>{1, 2, 3, 4}), w = f.upload(std::vector<float>(4, 0));
        CHECK(f.error_of(blas::geam<float>{
                  .a = v, .b = v, .c = w, .m = 2, .n = 2, .beta = 10, .trans_b = transpose::yes}) == error_code());
        CHECK(f.download(w) == std::vector<float>{11, 32, 23, 44});
        CHECK(f.error_of(blas::geam<float>{.a = v, .b = w, .c = v, .m = 2, .n = 2}) == errc::overlap);
        CHECK(f.error_of(blas::geam<float>{.a = w, .b = v, .c = v, .m = 2, .n = 2}) == errc::overlap);
        CHECK(f.error_of(blas::dgmm<float>{.a = v, .x = w, .c = v, .m = 2, .n = 2}) == errc::overlap);
        CHECK(f.error_of(blas::dgmm<float>{.a = v, .x = w, .c = w, .m = 2, .n = 2}) == errc::overlap);
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level3_elementwise
