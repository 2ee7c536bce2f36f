#include "support/dense.hpp"
#include "support/device_fixture.hpp"

#include <coaccel/ops/blas/level2.hpp>

#include <doctest/doctest.h>

#include <limits>

namespace test_ops_blas_level2 {

namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::engine;
using test::expectation;

struct shape {
    std::size_t m, n;
};

constexpr shape shapes[] = {{1, 1}, {3, 5}, {17, 9}, {1, 12}, {12, 1}, {40, 33}};

struct scale {
    double alpha, beta;
};

constexpr scale scales[] = {{1, 0}, {-0.5, 0}, {1, 1}, {2, -0.25}, {0, 1}, {0, 0}};

struct steps {
    std::int64_t x, y;
};

constexpr steps increments[] = {{1, 1}, {2, 3}, {-1, 1}, {1, -2}, {-3, -1}};

} // namespace

TEST_SUITE_BEGIN("blas level 2");

TEST_CASE_TEMPLATE("gemv multiplies a matrix and a vector", T, float, double)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& dims : shapes)
            for (const auto trans : {transpose::no, transpose::yes})
                for (const std::size_t extra : {0, 4})
                    for (const auto& inc : increments) {
                        const auto& s = scales[random() % std::size(scales)];
                        const std::size_t m = dims.m;
                        const std::size_t n = dims.n;
                        CAPTURE(m);
                        CAPTURE(n);
                        CAPTURE(trans);
                        CAPTURE(extra);
                        CAPTURE(inc.x);
                        CAPTURE(inc.y);
                        CAPTURE(s.alpha);
                        CAPTURE(s.beta);
                        const bool t = trans == transpose::yes;
                        const std::size_t length = t ? m : n;
                        // An operand that is multiplied by zero contains poison values, which must not reach the
                        // result.
                        const auto a =
                            s.alpha == 0 ? test::matrix<T>(m, n, extra) : test::matrix<T>(m, n, extra, random);
                        const auto x =
                            s.alpha == 0 ? test::vector<T>(length, inc.x) : test::vector<T>(length, inc.x, random);
                        const auto y =
                            s.beta == 0 ? test::vector<T>(t ? n : m, inc.y) : test::vector<T>(t ? n : m, inc.y, random);
                        const auto da = f.upload(a.data);
                        const auto dx = f.upload(x.data);
                        const auto dy = f.upload(y.data);
                        REQUIRE(f.exec(blas::gemv<T>{.a = a.in(da),
                                                     .x = x.in(dx),
                                                     .y = y.in(dy),
                                                     .m = m,
                                                     .n = n,
                                                     .alpha = T(s.alpha),
                                                     .beta = T(s.beta),
                                                     .trans = trans,
                                                     .lda = a.ld_field(),
                                                     .incx = inc.x,
                                                     .incy = inc.y}));
                        CHECK(y.difference(f.download(dy), x.n + 1, [&](std::size_t i) {
                            expectation e;
                            if (s.beta != 0)
                                e.add(s.beta * y.at(i));
                            for (std::size_t k = 0; k < x.n && s.alpha != 0; ++k)
                                e.add(s.alpha * (t ? a.at(k, i) : a.at(i, k)) * x.at(k));
                            return e;
                        }) == "");
                        CHECK(test::same_bits(f.download(da)[0], a.data[0]));
                    }
    }
}

TEST_CASE_TEMPLATE("gemv takes every pair of alpha and beta", T, float, double)
{
    engine random(7);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& s : scales) {
            CAPTURE(s.alpha);
            CAPTURE(s.beta);
            const auto a = s.alpha == 0 ? test::matrix<T>(5, 7, 1) : test::matrix<T>(5, 7, 1, random);
            const auto x = s.alpha == 0 ? test::vector<T>(7, 1) : test::vector<T>(7, 1, random);
            const auto y = s.beta == 0 ? test::vector<T>(5, 1) : test::vector<T>(5, 1, random);
            const auto da = f.upload(a.data);
            const auto dx = f.upload(x.data);
            const auto dy = f.upload(y.data);
            REQUIRE(f.exec(blas::gemv<T>{.a = a.in(da),
                                         .x = x.in(dx),
                                         .y = y.in(dy),
                                         .m = 5,
                                         .n = 7,
                                         .alpha = T(s.alpha),
                                         .beta = T(s.beta),
                                         .lda = a.ld}));
            CHECK(y.difference(f.download(dy), 8, [&](std::size_t i) {
                expectation e;
                if (s.beta != 0)
                    e.add(s.beta * y.at(i));
                for (std::size_t k = 0; k < 7 && s.alpha != 0; ++k)
                    e.add(s.alpha * a.at(i, k) * x.at(k));
                return e;
            }) == "");
        }
    }
}

TEST_CASE_TEMPLATE("ger adds an outer product to a matrix", T, float, double)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& dims : shapes)
            for (const std::size_t extra : {0, 2})
                for (const auto& inc : increments)
                    for (const double alpha : {0.0, 1.0, -1.5}) {
                        const std::size_t m = dims.m;
                        const std::size_t n = dims.n;
                        CAPTURE(m);
                        CAPTURE(n);
                        CAPTURE(extra);
                        CAPTURE(inc.x);
                        CAPTURE(inc.y);
                        CAPTURE(alpha);
                        const auto x = alpha == 0 ? test::vector<T>(m, inc.x) : test::vector<T>(m, inc.x, random);
                        const auto y = alpha == 0 ? test::vector<T>(n, inc.y) : test::vector<T>(n, inc.y, random);
                        const test::matrix<T> a(m, n, extra, random);
                        const auto dx = f.upload(x.data);
                        const auto dy = f.upload(y.data);
                        const auto da = f.upload(a.data);
                        REQUIRE(f.exec(blas::ger<T>{.x = x.in(dx),
                                                    .y = y.in(dy),
                                                    .a = a.in(da),
                                                    .m = m,
                                                    .n = n,
                                                    .alpha = T(alpha),
                                                    .lda = a.ld_field(),
                                                    .incx = inc.x,
                                                    .incy = inc.y}));
                        CHECK(a.difference(f.download(da), 3, [&](std::size_t i, std::size_t j) {
                            expectation e;
                            e.add(a.at(i, j));
                            if (alpha != 0)
                                e.add(alpha * x.at(i) * y.at(j));
                            return e;
                        }) == "");
                    }
    }
}

TEST_CASE("a leading dimension beyond any memory is valid for one column")
{
    constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto ld : {huge, huge / 2, huge / 2 + 1}) {
            CAPTURE(ld);
            const auto a = f.upload(std::vector<float>{1, 2, 3});
            const auto one = f.upload(std::vector<float>{2});
            const auto y = f.upload(std::vector<float>{9, 9, 9});
            REQUIRE(f.exec(blas::gemv<float>{.a = a, .x = one, .y = y, .m = 3, .n = 1, .lda = ld}));
            CHECK(f.download(y) == std::vector<float>{2, 4, 6});
            REQUIRE(f.exec(
                blas::gemv<float>{.a = a, .x = y, .y = one, .m = 3, .n = 1, .trans = transpose::yes, .lda = ld}));
            CHECK(f.download(one) == std::vector<float>{28});
            REQUIRE(f.exec(blas::ger<float>{.x = y, .y = one, .a = a, .m = 3, .n = 1, .lda = ld}));
            CHECK(f.download(a) == std::vector<float>{57, 114, 171});
        }
    }
}

TEST_CASE("an output that overlaps an input is refused")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<float>(32, 1));
        const auto w = f.upload(std::vector<float>(32, 1));
        using gemv = blas::gemv<float>;
        using ger = blas::ger<float>;
        CHECK(f.error_of(gemv{.a = v.subspan(0, 16), .x = w.subspan(0, 4), .y = w.subspan(0, 4), .m = 4, .n = 4}) ==
              errc::overlap);
        CHECK(f.error_of(gemv{.a = v.subspan(0, 16), .x = w.subspan(0, 4), .y = v.subspan(15, 4), .m = 4, .n = 4}) ==
              errc::overlap);
        CHECK(f.error_of(gemv{.a = v.subspan(0, 16), .x = v.subspan(0, 4), .y = v.subspan(16, 4), .m = 4, .n = 4}) ==
              error_code());
        CHECK(f.error_of(ger{.x = v.subspan(15, 4), .y = w, .a = v.subspan(0, 16), .m = 4, .n = 4}) == errc::overlap);
        CHECK(f.error_of(ger{.x = w, .y = w, .a = v.subspan(0, 16), .m = 4, .n = 4}) == error_code());
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level2
