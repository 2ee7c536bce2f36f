#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level2_batched.hpp>

#include <doctest/doctest.h>

#include <algorithm>
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

/// ger, geru and gerc; `turned` is what the op does with the elements of y.
template <class Op>
void check_rank_one(test::wide<typename Op::value_type> (*turned)(const test::wide<typename Op::value_type>&))
{
    using T = typename Op::value_type;
    test::on_every_device([&](device_fixture& f, engine& random) {
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
                        REQUIRE(test::exec_listed(f, Op{.x = x.in(dx),
                                                        .y = y.in(dy),
                                                        .a = a.in(da),
                                                        .m = m,
                                                        .n = n,
                                                        .alpha = test::factor<T>(alpha),
                                                        .lda = a.ld_field(),
                                                        .incx = inc.x,
                                                        .incy = inc.y}));
                        CHECK(a.difference(f.download(da), 3, [&](std::size_t i, std::size_t j) {
                            test::expectation_of<test::wide<T>> e;
                            e.add(a.at(i, j));
                            if (alpha != 0)
                                e.add(test::number(test::factor<T>(alpha)) * x.at(i) * turned(y.at(j)));
                            return e;
                        }) == "");
                    }
    });
}

} // namespace

TEST_SUITE_BEGIN("blas level 2");

TEST_CASE_TEMPLATE("gemv multiplies a matrix and a vector", T, float, double, std::complex<float>, std::complex<double>)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& dims : shapes)
            for (const auto trans : test::every_transpose)
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
                        const bool t = trans != transpose::no;
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
                        REQUIRE(test::exec_listed(f, blas::gemv<T>{.a = a.in(da),
                                                                   .x = x.in(dx),
                                                                   .y = y.in(dy),
                                                                   .m = m,
                                                                   .n = n,
                                                                   .alpha = test::factor<T>(s.alpha),
                                                                   .beta = test::factor<T>(s.beta),
                                                                   .trans = trans,
                                                                   .lda = a.ld_field(),
                                                                   .incx = inc.x,
                                                                   .incy = inc.y}));
                        CHECK(y.difference(f.download(dy), x.n + 1, [&](std::size_t i) {
                            test::expectation_of<test::wide<T>> e;
                            if (s.beta != 0)
                                e.add(test::number(test::factor<T>(s.beta)) * y.at(i));
                            for (std::size_t k = 0; k < x.n && s.alpha != 0; ++k)
                                e.add(test::number(test::factor<T>(s.alpha)) * test::taken(a, trans, i, k) * x.at(k));
                            return e;
                        }) == "");
                        CHECK(test::same_bits(f.download(da)[0], a.data[0]));
                    }
    });
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
            REQUIRE(test::exec_listed(f, blas::gemv<T>{.a = a.in(da),
                                                       .x = x.in(dx),
                                                       .y = y.in(dy),
                                                       .m = 5,
                                                       .n = 7,
                                                       .alpha = test::factor<T>(s.alpha),
                                                       .beta = test::factor<T>(s.beta),
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

TEST_CASE_TEMPLATE("gemv_strided_batched does each product of the batch", T, float, double, half, bfloat16,
                   std::complex<float>, std::complex<double>)
{
    struct row {
        const char* name;
        std::size_t batch;
        bool one_a, one_x;
        std::size_t gap;
    };
    constexpr row rows[] = {
        {"one", 1, false, false, 0},
        {"several", 4, false, false, 0},
        {"several with gaps", 3, false, false, 5},
        {"one A for all", 3, true, false, 2},
        {"one x for all", 3, false, true, 1},
    };
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    const std::size_t m = 7, n = 5;
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& r : rows)
            for (const auto trans : test::every_transpose)
                for (const auto& inc : increments)
                    for (const auto& s : scales) {
                        INFO(r.name, ", trans ", int(trans), ", incx ", inc.x, ", incy ", inc.y, ", alpha ", s.alpha,
                             ", beta ", s.beta);
                        const bool t = trans != transpose::no;
                        const std::size_t length = t ? m : n, results = t ? n : m;
                        std::vector<test::matrix<T>> a;
                        std::vector<test::vector<T>> x, y;
                        for (std::size_t i = 0; i < r.batch; ++i) {
                            a.push_back(test::operand<T>(m, n, r.gap % 3, s.alpha, random));
                            x.push_back(test::vector_operand<T>(length, inc.x, s.alpha, random));
                            y.push_back(test::vector_operand<T>(results, inc.y, s.beta, random));
                        }
                        const auto joined = [&r](const auto& all, std::size_t stride) {
                            std::vector<T> data((r.batch - 1) * stride + all[0].extent, test::poison<T>());
                            for (std::size_t i = 0; i < r.batch && (i == 0 || stride != 0); ++i)
                                std::copy_n(all[i].data.begin() + test::margin, all[i].extent,
                                            data.begin() + static_cast<std::ptrdiff_t>(i * stride));
                            return data;
                        };
                        const std::size_t stride_a = r.one_a ? 0 : a[0].extent + r.gap;
                        const std::size_t stride_x = r.one_x ? 0 : x[0].extent + r.gap;
                        const std::size_t stride_y = y[0].extent + r.gap;
                        const auto before = joined(y, stride_y);
                        const auto da = f.upload(joined(a, stride_a)), dx = f.upload(joined(x, stride_x));
                        const auto dy = f.upload(before);
                        REQUIRE(test::exec_listed(f, blas::gemv_strided_batched<T>{.a = da,
                                                                                   .x = dx,
                                                                                   .y = dy,
                                                                                   .m = m,
                                                                                   .n = n,
                                                                                   .batch = r.batch,
                                                                                   .stride_a = stride_a,
                                                                                   .stride_x = stride_x,
                                                                                   .stride_y = stride_y,
                                                                                   .alpha = test::factor<T>(s.alpha),
                                                                                   .beta = test::factor<T>(s.beta),
                                                                                   .trans = trans,
                                                                                   .lda = a[0].ld_field(),
                                                                                   .incx = inc.x,
                                                                                   .incy = inc.y}));
                        const auto got = f.download(dy);
                        for (std::size_t b = 0; b < r.batch; ++b) {
                            // The margins of `part` are not memory of the op; the gaps are checked below.
                            auto part = y[b].data;
                            std::copy_n(got.begin() + static_cast<std::ptrdiff_t>(b * stride_y), y[b].extent,
                                        part.begin() + test::margin);
                            const auto& matrix = a[r.one_a ? 0 : b];
                            const auto& vector = x[r.one_x ? 0 : b];
                            CHECK(y[b].difference(part, length + 1, [&](std::size_t i) {
                                test::expectation_of<test::wide<T>> e;
                                if (s.beta != 0)
                                    e.add(test::number(test::factor<T>(s.beta)) * y[b].at(i));
                                for (std::size_t p = 0; p < length && s.alpha != 0; ++p)
                                    e.add(test::number(test::factor<T>(s.alpha)) * test::taken(matrix, trans, i, p) *
                                          vector.at(p));
                                return e;
                            }) == "");
                            for (std::size_t g = 0; g < r.gap && b + 1 < r.batch; ++g)
                                CHECK(test::same_bits(got[b * stride_y + y[b].extent + g], test::poison<T>()));
                        }
                    }
    }
}

TEST_CASE("the results of gemv_strided_batched may interleave")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto a = f.upload(std::vector<float>{1, 2, 3, 4});
        const auto x = f.upload(std::vector<float>{1, 0, 0, 1});
        const auto y = f.upload(std::vector<float>(4, 9));
        using op = blas::gemv_strided_batched<float>;
        CHECK(f.error_of(
                  op{.a = a, .x = x, .y = y, .m = 2, .n = 2, .batch = 2, .stride_x = 2, .stride_y = 1, .incy = 2}) ==
              error_code());
        CHECK(f.download(y) == std::vector<float>{1, 3, 2, 4});
        CHECK(f.error_of(op{.a = a, .x = x, .y = y, .m = 2, .n = 2, .batch = 2, .stride_y = 1}) ==
              errc::invalid_argument);
        CHECK(f.error_of(op{.a = a, .x = x, .y = x, .m = 2, .n = 2, .batch = 1}) == errc::overlap);
    }
}

TEST_CASE_TEMPLATE("ger adds an outer product to a matrix", T, float, double)
{
    check_rank_one<blas::ger<T>>([](const double& value) { return value; });
}

TEST_CASE_TEMPLATE("geru and gerc add outer products to a complex matrix", T, std::complex<float>, std::complex<double>)
{
    check_rank_one<blas::geru<T>>([](const std::complex<double>& value) { return value; });
    check_rank_one<blas::gerc<T>>([](const std::complex<double>& value) { return std::conj(value); });
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
            REQUIRE(test::exec_listed(f, blas::gemv<float>{.a = a, .x = one, .y = y, .m = 3, .n = 1, .lda = ld}));
            CHECK(f.download(y) == std::vector<float>{2, 4, 6});
            REQUIRE(test::exec_listed(
                f, blas::gemv<float>{.a = a, .x = y, .y = one, .m = 3, .n = 1, .trans = transpose::yes, .lda = ld}));
            CHECK(f.download(one) == std::vector<float>{28});
            REQUIRE(test::exec_listed(f, blas::ger<float>{.x = y, .y = one, .a = a, .m = 3, .n = 1, .lda = ld}));
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
