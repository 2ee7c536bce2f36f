#include "support/dense_reference.hpp"
#include "support/on_every_device.hpp"

#include <coaccel/ops/blas/level3.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace test_ops_blas_level3 {

namespace {

using namespace coaccel;
using blas::transpose;
using test::device_fixture;
using test::engine;
using test::expectation;

struct shape {
    std::size_t m, n, k;
};

constexpr shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {33, 17, 45}, {1, 19, 3}, {19, 1, 9}, {5, 6, 1}};

using test::scale;
constexpr auto& scales = test::every_scale;
constexpr auto& ways = test::every_transpose;

template <class T>
test::expectation_of<test::wide<T>> product(const test::matrix<T>& a, transpose ta, const test::matrix<T>& b,
                                            transpose tb, const test::matrix<T>& c, const scale& s, std::size_t k,
                                            std::size_t i, std::size_t j)
{
    auto e = test::kept(c, test::wide<T>(test::number(test::factor<T>(s.beta))), i, j);
    for (std::size_t p = 0; p < k && s.alpha != 0; ++p)
        e.add(test::number(test::factor<T>(s.alpha)) * test::taken(a, ta, i, p) * test::taken(b, tb, p, j));
    return e;
}

/// Makes an operand. If it is multiplied by zero it contains poison values, which must not reach the result.
template <class T>
test::matrix<T> operand(std::size_t rows, std::size_t cols, transpose t, std::size_t extra, double factor,
                        engine& random)
{
    if (t != transpose::no)
        std::swap(rows, cols);
    return factor == 0 ? test::matrix<T>(rows, cols, extra) : test::matrix<T>(rows, cols, extra, random);
}

/// Several matrices in one allocation, at a fixed stride.
template <class T>
std::vector<T> joined(const std::vector<test::matrix<T>>& all, std::size_t stride)
{
    std::vector<T> data((all.size() - 1) * stride + all.front().data.size(), test::poison<T>());
    for (std::size_t i = 0; i < all.size(); ++i)
        std::copy(all[i].data.begin() + test::margin, all[i].data.end() - test::margin,
                  data.begin() + static_cast<std::ptrdiff_t>(test::margin + i * stride));
    return data;
}

} // namespace

TEST_SUITE_BEGIN("blas level 3");

TEST_CASE_TEMPLATE("gemm multiplies matrices of every shape, order and scale", T, float, double, half, bfloat16,
                   std::complex<float>, std::complex<double>)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& dims : shapes)
            for (const auto ta : ways)
                for (const auto tb : ways)
                    for (const std::size_t extra : {0, 3})
                        for (const auto& s : scales) {
                            const std::size_t m = dims.m;
                            const std::size_t n = dims.n;
                            const std::size_t k = dims.k;
                            CAPTURE(m);
                            CAPTURE(n);
                            CAPTURE(k);
                            CAPTURE(ta);
                            CAPTURE(tb);
                            CAPTURE(extra);
                            CAPTURE(s.alpha);
                            CAPTURE(s.beta);
                            const auto a = operand<T>(m, k, ta, extra, s.alpha, random);
                            const auto b = operand<T>(k, n, tb, extra, s.alpha, random);
                            const auto c = operand<T>(m, n, transpose::no, extra, s.beta, random);
                            const auto da = f.upload(a.data);
                            const auto db = f.upload(b.data);
                            const auto dc = f.upload(c.data);
                            REQUIRE(test::exec_listed(f, blas::gemm<T>{.a = a.in(da),
                                                                       .b = b.in(db),
                                                                       .c = c.in(dc),
                                                                       .m = m,
                                                                       .n = n,
                                                                       .k = k,
                                                                       .alpha = test::factor<T>(s.alpha),
                                                                       .beta = test::factor<T>(s.beta),
                                                                       .trans_a = ta,
                                                                       .trans_b = tb,
                                                                       .lda = a.ld_field(),
                                                                       .ldb = b.ld_field(),
                                                                       .ldc = c.ld_field()}));
                            CHECK(c.difference(f.download(dc), k + 1, [&](std::size_t i, std::size_t j) {
                                return product(a, ta, b, tb, c, s, k, i, j);
                            }) == "");
                        }
    });
}

TEST_CASE_TEMPLATE("gemm_strided_batched does each product of the batch", T, float, double, half, bfloat16,
                   std::complex<float>, std::complex<double>)
{
    struct row {
        const char* name;
        std::size_t batch;
        bool one_a;
        bool one_b;
        std::size_t gap;
    };
    constexpr row rows[] = {
        {"one", 1, false, false, 0},
        {"several", 4, false, false, 0},
        {"several with gaps", 3, false, false, 5},
        {"one A for all", 3, true, false, 2},
        {"one B for all", 3, false, true, 0},
        {"one of both", 2, true, true, 1},
    };
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    const std::size_t m = 7, n = 5, k = 9;
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& r : rows)
            for (const auto ta : ways)
                for (const auto tb : ways)
                    for (const auto& s : scales) {
                        CAPTURE(r.name);
                        CAPTURE(ta);
                        CAPTURE(tb);
                        CAPTURE(s.alpha);
                        CAPTURE(s.beta);
                        const std::size_t extra = r.gap % 3;
                        std::vector<test::matrix<T>> a, b, c;
                        for (std::size_t i = 0; i < r.batch; ++i) {
                            if (i == 0 || !r.one_a)
                                a.push_back(operand<T>(m, k, ta, extra, s.alpha, random));
                            if (i == 0 || !r.one_b)
                                b.push_back(operand<T>(k, n, tb, extra, s.alpha, random));
                            c.push_back(operand<T>(m, n, transpose::no, extra, s.beta, random));
                        }
                        const std::size_t stride_a = r.one_a ? 0 : a[0].extent + r.gap;
                        const std::size_t stride_b = r.one_b ? 0 : b[0].extent + r.gap;
                        const std::size_t stride_c = c[0].extent + r.gap;
                        const auto host_c = joined(c, stride_c);
                        const auto da = f.upload(joined(a, stride_a));
                        const auto db = f.upload(joined(b, stride_b));
                        const auto dc = f.upload(host_c);
                        REQUIRE(test::exec_listed(f, blas::gemm_strided_batched<T>{
                                                         .a = da.subspan(test::margin, da.size() - 2 * test::margin),
                                                         .b = db.subspan(test::margin, db.size() - 2 * test::margin),
                                                         .c = dc.subspan(test::margin, dc.size() - 2 * test::margin),
                                                         .m = m,
                                                         .n = n,
                                                         .k = k,
                                                         .batch = r.batch,
                                                         .stride_a = stride_a,
                                                         .stride_b = stride_b,
                                                         .stride_c = stride_c,
                                                         .alpha = test::factor<T>(s.alpha),
                                                         .beta = test::factor<T>(s.beta),
                                                         .trans_a = ta,
                                                         .trans_b = tb,
                                                         .lda = a[0].ld_field(),
                                                         .ldb = b[0].ld_field(),
                                                         .ldc = c[0].ld_field()}));
                        auto got = f.download(dc);
                        for (std::size_t i = 0; i < r.batch; ++i) {
                            const auto first = got.begin() + static_cast<std::ptrdiff_t>(i * stride_c);
                            std::vector<T> part(first, first + static_cast<std::ptrdiff_t>(c[i].data.size()));
                            // The margins overlap the neighbouring matrices; the gaps between the matrices are checked
                            // below.
                            std::fill_n(part.begin(), test::margin, test::poison<T>());
                            std::fill_n(part.rbegin(), test::margin, test::poison<T>());
                            CHECK(c[i].difference(part, k + 1, [&](std::size_t row, std::size_t col) {
                                return product(a[r.one_a ? 0 : i], ta, b[r.one_b ? 0 : i], tb, c[i], s, k, row, col);
                            }) == "");
                            for (std::size_t g = 0; g < r.gap && i + 1 < r.batch; ++g)
                                CHECK(test::same_bits(got[test::margin + i * stride_c + c[i].extent + g],
                                                      test::poison<T>()));
                        }
                    }
    }
}

TEST_CASE_TEMPLATE("gemm_ex has a result in f32", T, half, bfloat16)
{
    test::on_every_device([&](device_fixture& f, engine& random) {
        for (const auto& dims : shapes)
            for (const auto ta : ways)
                for (const auto tb : ways)
                    for (const auto& s : scales) {
                        const std::size_t m = dims.m, n = dims.n, k = dims.k;
                        const std::size_t extra = s.beta == 0 ? 0 : 3;
                        INFO("m ", m, ", n ", n, ", k ", k, ", trans_a ", int(ta), ", trans_b ", int(tb), ", alpha ",
                             s.alpha, ", beta ", s.beta);
                        const auto a = operand<T>(m, k, ta, extra, s.alpha, random);
                        const auto b = operand<T>(k, n, tb, extra, s.alpha, random);
                        const auto c = operand<float>(m, n, transpose::no, extra, s.beta, random);
                        const auto da = f.upload(a.data), db = f.upload(b.data);
                        const auto dc = f.upload(c.data);
                        REQUIRE(test::exec_listed(f, blas::gemm_ex<T>{.a = a.in(da),
                                                                      .b = b.in(db),
                                                                      .c = c.in(dc),
                                                                      .m = m,
                                                                      .n = n,
                                                                      .k = k,
                                                                      .alpha = static_cast<float>(s.alpha),
                                                                      .beta = static_cast<float>(s.beta),
                                                                      .trans_a = ta,
                                                                      .trans_b = tb,
                                                                      .lda = a.ld_field(),
                                                                      .ldb = b.ld_field(),
                                                                      .ldc = c.ld_field()}));
                        CHECK(c.difference(f.download(dc), k + 1, [&](std::size_t i, std::size_t j) {
                            auto e = test::kept(c, s.beta, i, j);
                            for (std::size_t p = 0; p < k && s.alpha != 0; ++p)
                                e.add(s.alpha * test::taken(a, ta, i, p) * test::taken(b, tb, p, j));
                            return e;
                        }) == "");
                    }
    });
}

TEST_CASE("gemm_ex of i8 is exact in i32")
{
    struct row {
        std::uint64_t m, n, k, gap;
        std::int32_t alpha, beta;
    };
    constexpr row rows[] = {{4, 4, 4, 0, 1, 0}, {8, 4, 12, 4, 2, -3}, {4, 1, 8, 0, -1, 1},
                            {4, 3, 4, 4, 0, 2}, {5, 5, 7, 8, 1, 0},   {16, 12, 64, 0, 1, 1}};
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    const auto numbers = [&random](std::uint64_t count) {
        std::vector<std::int8_t> made(count);
        for (auto& one : made)
            one = static_cast<std::int8_t>(random());
        return made;
    };
    const auto multiple_of_4 = [](std::uint64_t n) { return (n + 3) / 4 * 4; };
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        for (const auto& r : rows)
            for (const auto ta : ways) {
                const bool at = ta != transpose::no;
                // Leading dimensions are multiples of 4.
                const std::uint64_t lda = multiple_of_4(at ? r.k : r.m) + r.gap, ldb = multiple_of_4(r.k) + r.gap;
                const std::uint64_t ldc = r.m + r.gap / 4;
                const auto a = numbers(lda * (at ? r.m : r.k)), b = numbers(ldb * r.n);
                std::vector<std::int32_t> c(ldc * r.n);
                for (auto& one : c)
                    one = static_cast<std::int32_t>(random() % 1000) - 500;
                const auto da = f.upload(a), db = f.upload(b);
                const auto dc = f.upload(c);
                REQUIRE(test::exec_listed(f, blas::gemm_ex<std::int8_t>{.a = da,
                                                                        .b = db,
                                                                        .c = dc,
                                                                        .m = r.m,
                                                                        .n = r.n,
                                                                        .k = r.k,
                                                                        .alpha = r.alpha,
                                                                        .beta = r.beta,
                                                                        .trans_a = ta,
                                                                        .lda = lda,
                                                                        .ldb = ldb,
                                                                        .ldc = ldc}));
                auto wanted = c;
                for (std::uint64_t j = 0; j < r.n; ++j)
                    for (std::uint64_t i = 0; i < r.m; ++i) {
                        std::int32_t sum = 0;
                        for (std::uint64_t p = 0; p < r.k; ++p)
                            sum += a[at ? p + i * lda : i + p * lda] * b[p + j * ldb];
                        wanted[i + j * ldc] = r.alpha * sum + r.beta * c[i + j * ldc];
                    }
                CHECK(f.download(dc) == wanted);
            }
    }
}

TEST_CASE_TEMPLATE("16-bit elements accumulate in f32", T, half, bfloat16)
{
    // If accumulated in T, the sum would stop growing at the first power of two where the spacing of T is two.
    constexpr std::size_t k = 4096;
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto ones = f.upload(std::vector<T>(k, T(1.0F)));
        const auto c = f.upload(std::vector<T>(1, T(0.0F)));
        const auto also_ones = f.upload(std::vector<T>(k, T(1.0F)));
        REQUIRE(test::exec_listed(f, blas::gemm<T>{.a = ones, .b = also_ones, .c = c, .m = 1, .n = 1, .k = k}));
        CHECK(float(f.download(c)[0]) == 4096.0F);
        REQUIRE(test::exec_listed(
            f, blas::gemm<T>{.a = ones, .b = also_ones, .c = c, .m = 1, .n = 1, .k = k, .alpha = 0x1p-13F}));
        CHECK(float(f.download(c)[0]) == 0.5F);
    }
}

TEST_CASE("a product too large for half is infinite")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto a = f.upload(std::vector<half>{half(300.0F), half(-300.0F)});
        const auto b = f.upload(std::vector<half>{half(300.0F)});
        const auto c = f.upload(std::vector<half>(2, half(0.0F)));
        REQUIRE(test::exec_listed(f, blas::gemm<half>{.a = a, .b = b, .c = c, .m = 2, .n = 1, .k = 1}));
        CHECK(float(f.download(c)[0]) == std::numeric_limits<float>::infinity());
        CHECK(float(f.download(c)[1]) == -std::numeric_limits<float>::infinity());
        REQUIRE(test::exec_listed(f, blas::gemm<half>{.a = a, .b = b, .c = c, .m = 2, .n = 1, .k = 1, .alpha = 0.5F}));
        CHECK(float(f.download(c)[0]) == 45000.0F - 8.0F);
    }
}

TEST_CASE_TEMPLATE("TF32 is for f32 alone", T, double, half, bfloat16)
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    const std::size_t m = 17, n = 9, k = 41;
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const test::matrix<T> a(m, k, 0, random), b(k, n, 0, random), c(m, n, 0);
        const auto da = f.upload(a.data);
        const auto db = f.upload(b.data);
        std::vector<std::vector<T>> got;
        for (const auto how : {blas::math::standard, blas::math::tf32, blas::math::pedantic}) {
            const auto dc = f.upload(c.data);
            REQUIRE(test::exec_listed(
                f, blas::gemm<T>{.a = a.in(da), .b = b.in(db), .c = c.in(dc), .m = m, .n = n, .k = k, .math = how}));
            got.push_back(f.download(dc));
        }
        CHECK(std::memcmp(got[0].data(), got[1].data(), got[0].size() * sizeof(T)) == 0);
        CHECK(c.difference(got[2], k + 1, [&](std::size_t i, std::size_t j) {
            return product(a, transpose::no, b, transpose::no, c, {1, 0}, k, i, j);
        }) == "");
    }
}

TEST_CASE("products in TF32 are right to about three digits")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    engine random(seed);
    const std::size_t m = 33, n = 20, k = 64, batch = 2;
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const test::matrix<float> a(m, k, 0, random), b(k, n, 0, random), c(m, n, 0);
        const auto da = f.upload(a.data);
        const auto db = f.upload(b.data);
        const auto one = f.upload(std::vector<float>(m * n));
        const auto two = f.upload(std::vector<float>(batch * m * n));
        REQUIRE(test::exec_listed(
            f, blas::gemm<float>{
                   .a = a.in(da), .b = b.in(db), .c = one, .m = m, .n = n, .k = k, .math = blas::math::tf32}));
        REQUIRE(test::exec_listed(f, blas::gemm_strided_batched<float>{.a = a.in(da),
                                                                       .b = b.in(db),
                                                                       .c = two,
                                                                       .m = m,
                                                                       .n = n,
                                                                       .k = k,
                                                                       .batch = batch,
                                                                       .stride_c = m * n,
                                                                       .math = blas::math::tf32}));
        auto got = f.download(one);
        const auto also = f.download(two);
        got.insert(got.end(), also.begin(), also.end());
        for (std::size_t at = 0; at < got.size(); ++at) {
            const std::size_t i = at % m, j = at / m % n;
            const auto wanted = product(a, transpose::no, b, transpose::no, c, {1, 0}, k, i, j);
            CAPTURE(at);
            // Two factors, each with an error of at most half a unit of the tenth bit, or of one unit if truncated.
            CHECK(std::abs(got[at] - wanted.value) <= 2.1 * 0x1p-10 * wanted.magnitude);
        }
    }
}

TEST_CASE("an unknown math mode is refused")
{
    const auto neither = static_cast<blas::math>(3);
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto v = f.upload(std::vector<float>(4, 1));
        const auto w = f.upload(std::vector<float>(4, 1));
        using batched = blas::gemm_strided_batched<float>;
        CHECK(f.error_of(blas::gemm<float>{.a = v, .b = v, .c = w, .m = 2, .n = 2, .k = 2, .math = neither}) ==
              errc::invalid_argument);
        CHECK(f.error_of(batched{.a = v, .b = v, .c = w, .m = 2, .n = 2, .k = 2, .batch = 1, .math = neither}) ==
              errc::invalid_argument);
    }
}

TEST_CASE("two inputs may be one buffer, and an output may not overlap an input")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        CAPTURE(options.kind);
        const auto v = f.upload(std::vector<double>(64, 1));
        const auto w = f.upload(std::vector<double>(64, 1));
        using gemm = blas::gemm<double>;
        using batched = blas::gemm_strided_batched<double>;
        CHECK(f.error_of(gemm{.a = v, .b = v, .c = w, .m = 8, .n = 8, .k = 8}) == error_code());
        CHECK(f.download(w) == std::vector<double>(64, 8));
        CHECK(f.error_of(gemm{.a = v, .b = w, .c = v, .m = 8, .n = 8, .k = 8}) == errc::overlap);
        CHECK(f.error_of(gemm{.a = w, .b = v, .c = v, .m = 8, .n = 8, .k = 8}) == errc::overlap);
        const auto a = v.subspan(0, 16), b = v.subspan(16, 16), c = v.subspan(32, 16), last_of_b = v.subspan(31, 16);
        CHECK(f.error_of(gemm{.a = a, .b = b, .c = c, .m = 4, .n = 4, .k = 4}) == error_code());
        CHECK(f.error_of(gemm{.a = a, .b = b, .c = last_of_b, .m = 4, .n = 4, .k = 4}) == errc::overlap);
        CHECK(f.error_of(batched{.a = a, .b = b, .c = last_of_b, .m = 2, .n = 2, .k = 2, .batch = 1}) == errc::overlap);
        CHECK(f.error_of(batched{.a = a, .b = b, .c = c, .m = 2, .n = 2, .k = 2, .batch = 4, .stride_c = 4}) ==
              error_code());
    }
}

TEST_SUITE_END();

} // namespace test_ops_blas_level3
