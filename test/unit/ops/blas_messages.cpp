#include "support/refusals.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace test_ops_blas_messages {

// The error messages of refused ops: op, field and value.
namespace {

using namespace coaccel;
using blas::transpose;
using test::elements;
using test::refusals;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

constexpr auto invalid = errc::invalid_argument;
constexpr auto bounds = errc::out_of_bounds;
constexpr auto leading = errc::leading_dimension;

/// A is 3 by 3, B and C 3 by 5, on the left; on the right A must be 5 by 5.
template <class Op>
void check_symmetric_product()
{
    using T = typename Op::value_type;
    const refusals refused(
        Op{.a = elements<T>(9, 0), .b = elements<T>(15, 1), .c = elements<T>(15, 2), .m = 3, .n = 5});
    refused(invalid, "m is 0", [](Op& o) { o.m = 0; });
    refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
    refused(invalid, "side is 2, which is not a blas::side", [](Op& o) { o.side = blas::side(2); });
    refused(invalid, "uplo is 7, which is not a blas::uplo", [](Op& o) { o.uplo = blas::uplo(7); });
    refused(leading, "lda is 2, a has 3 rows", [](Op& o) { o.lda = 2; });
    refused(leading, "ldb is 1, b has 3 rows", [](Op& o) { o.ldb = 1; });
    refused(leading, "ldc is 2, c has 3 rows", [](Op& o) { o.ldc = 2; });
    refused(bounds, "a has 9 elements, needs 25", [](Op& o) { o.side = blas::side::right; });
    refused(bounds, "b has 15 elements, needs 19", [](Op& o) { o.ldb = 4; });
    refused(bounds, "c has 15 elements, needs 19", [](Op& o) { o.ldc = 4; });
    refused(errc::size_overflow, "the number of elements that a needs overflows 64 bits", [](Op& o) { o.lda = huge; });
}

/// op(A) is 3 by 5, C 3 by 3.
template <class Op>
void check_rank_update(transpose refused, const std::string& message)
{
    using T = typename Op::value_type;
    Op good{};
    good.a = elements<T>(15, 0);
    good.c = elements<T>(9, 2);
    good.n = 3;
    good.k = 5;
    constexpr bool two = requires { good.b; };
    if constexpr (two)
        good.b = elements<T>(15, 1);
    const refusals all(good);
    all(invalid, "n is 0", [](Op& o) { o.n = 0; });
    all(invalid, "k is 0", [](Op& o) { o.k = 0; });
    all(invalid, "uplo is 2, which is not a blas::uplo", [](Op& o) { o.uplo = blas::uplo(2); });
    all(invalid, "trans is 3, which is not a blas::transpose", [](Op& o) { o.trans = transpose(3); });
    all(leading, "lda is 2, a has 3 rows", [](Op& o) { o.lda = 2; });
    all(leading, "ldc is 2, c has 3 rows", [](Op& o) { o.ldc = 2; });
    all(bounds, "a has 15 elements, needs 18", [](Op& o) { o.k = 6; });
    all(bounds, "c has 9 elements, needs 11", [](Op& o) { o.ldc = 4; });
    if constexpr (two) {
        all(leading, "ldb is 2, b has 3 rows", [](Op& o) { o.ldb = 2; });
        all(bounds, "b has 15 elements, needs 19", [](Op& o) { o.ldb = 4; });
    }
    if (!message.empty())
        all(invalid, message, [refused](Op& o) { o.trans = refused; });
    else
        CHECK_FALSE([&] {
            Op same = good;
            same.trans = refused;
            return same.check();
        }());
}

template <class Op>
void check_triangular()
{
    using T = typename Op::value_type;
    const refusals refused(Op{.a = elements<T>(9, 0), .b = elements<T>(15, 1), .m = 3, .n = 5});
    refused(invalid, "m is 0", [](Op& o) { o.m = 0; });
    refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
    refused(invalid, "side is 2, which is not a blas::side", [](Op& o) { o.side = blas::side(2); });
    refused(invalid, "uplo is 2, which is not a blas::uplo", [](Op& o) { o.uplo = blas::uplo(2); });
    refused(invalid, "trans is 3, which is not a blas::transpose", [](Op& o) { o.trans = transpose(3); });
    refused(invalid, "diag is 9, which is not a blas::diag", [](Op& o) { o.diag = blas::diag(9); });
    refused(leading, "lda is 2, a has 3 rows", [](Op& o) { o.lda = 2; });
    refused(leading, "ldb is 2, b has 3 rows", [](Op& o) { o.ldb = 2; });
    refused(bounds, "a has 9 elements, needs 25", [](Op& o) { o.side = blas::side::right; });
    refused(bounds, "b has 15 elements, needs 19", [](Op& o) { o.ldb = 4; });
}

/// x has 3 elements, y 5, A is 3 by 5.
template <class Op>
void check_rank_one()
{
    using T = typename Op::value_type;
    const refusals refused(Op{.x = elements<T>(3, 0), .y = elements<T>(5, 1), .a = elements<T>(15, 2), .m = 3, .n = 5});
    refused(invalid, "m is 0", [](Op& o) { o.m = 0; });
    refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
    refused(invalid, "incx is 0", [](Op& o) { o.incx = 0; });
    refused(invalid, "incy is 0", [](Op& o) { o.incy = 0; });
    refused(leading, "lda is 2, a has 3 rows", [](Op& o) { o.lda = 2; });
    refused(bounds, "a has 15 elements, needs 19", [](Op& o) { o.lda = 4; });
    refused(bounds, "x has 3 elements, needs 5", [](Op& o) { o.incx = 2; });
    refused(bounds, "y has 5 elements, needs 13", [](Op& o) { o.incy = -3; });
}

/// A is 3 by 3, x and y have 3 elements.
template <class Op>
void check_square()
{
    using T = typename Op::value_type;
    Op good{};
    good.a = elements<T>(9, 0);
    good.x = elements<T>(3, 1);
    good.n = 3;
    if constexpr (requires { good.y; })
        good.y = elements<T>(3, 2);
    const refusals refused(good);
    refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
    refused(invalid, "uplo is 2, which is not a blas::uplo", [](Op& o) { o.uplo = blas::uplo(2); });
    refused(invalid, "incx is 0", [](Op& o) { o.incx = 0; });
    refused(leading, "lda is 2, a has 3 rows", [](Op& o) { o.lda = 2; });
    refused(bounds, "a has 9 elements, needs 11", [](Op& o) { o.lda = 4; });
    refused(bounds, "x has 3 elements, needs 5", [](Op& o) { o.incx = -2; });
    if constexpr (requires { good.y; }) {
        refused(invalid, "incy is 0", [](Op& o) { o.incy = 0; });
        refused(bounds, "y has 3 elements, needs 7", [](Op& o) { o.incy = 3; });
    }
    if constexpr (requires { good.diag; }) {
        refused(invalid, "trans is 3, which is not a blas::transpose", [](Op& o) { o.trans = transpose(3); });
        refused(invalid, "diag is 2, which is not a blas::diag", [](Op& o) { o.diag = blas::diag(2); });
    }
}

} // namespace

TEST_SUITE_BEGIN("messages of refused BLAS ops");

TEST_CASE("products with a symmetric matrix")
{
    check_symmetric_product<blas::symm<double>>();
    check_symmetric_product<blas::hemm<std::complex<float>>>();
}

TEST_CASE("updates of a symmetric matrix")
{
    using c64 = std::complex<float>;
    const std::string not_conjugate = "trans is conjugate, must be no or yes with complex elements";
    const std::string not_yes = "trans is yes, must be no or conjugate";
    check_rank_update<blas::syrk<c64>>(transpose::conjugate, not_conjugate);
    check_rank_update<blas::syr2k<c64>>(transpose::conjugate, not_conjugate);
    check_rank_update<blas::syrkx<c64>>(transpose::conjugate, not_conjugate);
    check_rank_update<blas::herk<c64>>(transpose::yes, not_yes);
    check_rank_update<blas::her2k<c64>>(transpose::yes, not_yes);
    check_rank_update<blas::syrk<float>>(transpose::conjugate, "");
    check_rank_update<blas::syr2k<double>>(transpose::conjugate, "");
}

TEST_CASE("triangular products and equations")
{
    check_triangular<blas::trmm<float>>();
    check_triangular<blas::trsm<std::complex<double>>>();
}

TEST_CASE("sums of matrices and products with a diagonal")
{
    using geam = blas::geam<float>;
    using dgmm = blas::dgmm<float>;
    const refusals refused_geam(geam{.a = elements(15, 0), .b = elements(15, 1), .c = elements(15, 2), .m = 3, .n = 5});
    refused_geam(invalid, "m is 0", [](geam& o) { o.m = 0; });
    refused_geam(invalid, "n is 0", [](geam& o) { o.n = 0; });
    refused_geam(invalid, "trans_a is 3, which is not a blas::transpose", [](geam& o) { o.trans_a = transpose(3); });
    refused_geam(invalid, "trans_b is 4, which is not a blas::transpose", [](geam& o) { o.trans_b = transpose(4); });
    refused_geam(leading, "lda is 4, a has 5 rows", [](geam& o) { o.lda = 4, o.trans_a = transpose::yes; });
    refused_geam(leading, "ldb is 2, b has 3 rows", [](geam& o) { o.ldb = 2; });
    refused_geam(leading, "ldc is 2, c has 3 rows", [](geam& o) { o.ldc = 2; });
    refused_geam(bounds, "a has 15 elements, needs 19", [](geam& o) { o.lda = 4; });
    refused_geam(bounds, "b has 15 elements, needs 17", [](geam& o) { o.ldb = 6, o.trans_b = transpose::conjugate; });
    refused_geam(bounds, "c has 15 elements, needs 19", [](geam& o) { o.ldc = 4; });
    const refusals refused_dgmm(dgmm{.a = elements(15, 0), .x = elements(3, 1), .c = elements(15, 2), .m = 3, .n = 5});
    refused_dgmm(invalid, "m is 0", [](dgmm& o) { o.m = 0; });
    refused_dgmm(invalid, "n is 0", [](dgmm& o) { o.n = 0; });
    refused_dgmm(invalid, "side is 3, which is not a blas::side", [](dgmm& o) { o.side = blas::side(3); });
    refused_dgmm(invalid, "incx is 0", [](dgmm& o) { o.incx = 0; });
    refused_dgmm(bounds, "x has 3 elements, needs 5", [](dgmm& o) { o.side = blas::side::right; });
    refused_dgmm(bounds, "x has 3 elements, needs 5", [](dgmm& o) { o.incx = -2; });
    refused_dgmm(leading, "lda is 1, a has 3 rows", [](dgmm& o) { o.lda = 1; });
    refused_dgmm(leading, "ldc is 1, c has 3 rows", [](dgmm& o) { o.ldc = 1; });
    refused_dgmm(bounds, "a has 15 elements, needs 19", [](dgmm& o) { o.lda = 4; });
    refused_dgmm(bounds, "c has 15 elements, needs 19", [](dgmm& o) { o.ldc = 4; });
}

TEST_CASE("outer products")
{
    check_rank_one<blas::ger<float>>();
    check_rank_one<blas::geru<std::complex<float>>>();
    check_rank_one<blas::gerc<std::complex<double>>>();
}

TEST_CASE("symmetric and triangular matrices and vectors")
{
    using c64 = std::complex<float>;
    check_square<blas::symv<double>>();
    check_square<blas::hemv<c64>>();
    check_square<blas::syr<float>>();
    check_square<blas::her<c64>>();
    check_square<blas::syr2<float>>();
    check_square<blas::her2<c64>>();
    check_square<blas::trmv<float>>();
    check_square<blas::trsv<c64>>();
}

TEST_CASE("inner products of complex vectors and rotations")
{
    using c64 = std::complex<float>;
    const auto check = []<class Op>(Op) {
        const refusals refused(Op{.x = elements<c64>(3, 0), .y = elements<c64>(3, 1), .n = 3});
        refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
        refused(invalid, "incx is 0", [](Op& o) { o.incx = 0; });
        refused(invalid, "incy is 0", [](Op& o) { o.incy = 0; });
        refused(bounds, "x has 3 elements, needs 5", [](Op& o) { o.incx = -2; });
        refused(bounds, "y has 3 elements, needs 4", [](Op& o) { o.n = 4, o.x = elements<c64>(4, 0); });
    };
    check(blas::dotu<c64>{});
    check(blas::dotc<c64>{});
    check(blas::rot<c64>{});
    using rotg = blas::rotg<c64>;
    const refusals refused(
        rotg{.a = elements<c64>(1, 0), .b = elements<c64>(1, 1), .c = elements(1, 2), .s = elements<c64>(1, 3)});
    refused(errc::length_mismatch, "a has 2 elements, must have 1", [](rotg& o) { o.a = elements<c64>(2, 0); });
    refused(errc::length_mismatch, "b has 0 elements, must have 1", [](rotg& o) { o.b = elements<c64>(0, 0); });
    refused(errc::length_mismatch, "c has 3 elements, must have 1", [](rotg& o) { o.c = elements(3, 0); });
    refused(errc::length_mismatch, "s has 2 elements, must have 1", [](rotg& o) { o.s = elements<c64>(2, 0); });
}

TEST_CASE("products with results of another type")
{
    using gemm = blas::gemm_ex<std::int8_t>;
    const refusals refused(gemm{.a = elements<std::int8_t>(32, 0),
                                .b = elements<std::int8_t>(40, 1),
                                .c = elements<std::int32_t>(20, 2),
                                .m = 4,
                                .n = 5,
                                .k = 8});
    refused(invalid, "m is 0", [](gemm& o) { o.m = 0; });
    refused(invalid, "n is 0", [](gemm& o) { o.n = 0; });
    refused(invalid, "k is 0", [](gemm& o) { o.k = 0; });
    refused(invalid, "trans_a is 3, which is not a blas::transpose", [](gemm& o) { o.trans_a = transpose(3); });
    refused(invalid, "trans_b is 3, which is not a blas::transpose", [](gemm& o) { o.trans_b = transpose(3); });
    refused(invalid, "math is 3, which is not a blas::math", [](gemm& o) { o.math = blas::math(3); });
    refused(leading, "lda is 3, a has 4 rows", [](gemm& o) { o.lda = 3; });
    refused(bounds, "b has 40 elements, needs 44", [](gemm& o) { o.ldb = 9; });
    refused(bounds, "c has 20 elements, needs 24", [](gemm& o) { o.ldc = 5; });
    refused(leading, "lda is 3, must be a multiple of 4 with i8", [](gemm& o) { o.m = 3; });
    refused(leading, "ldb is 7, must be a multiple of 4 with i8", [](gemm& o) { o.k = 7; });
    refused(leading, "lda is 5, must be a multiple of 4 with i8", [](gemm& o) { o.lda = 5, o.k = 4; });
    refused(invalid, "a starts at element 2, must be a multiple of 4 with i8",
            [](gemm& o) { o.a = elements<std::int8_t>(64, 0).subspan(2, 40); });
    refused(invalid, "b starts at element 5, must be a multiple of 4 with i8",
            [](gemm& o) { o.b = elements<std::int8_t>(64, 0).subspan(5, 50); });
    refused(invalid, "trans_b is yes, B must not be transposed with i8", [](gemm& o) { o.trans_b = transpose::yes; });
    refused(invalid, "trans_b is conjugate, B must not be transposed with i8",
            [](gemm& o) { o.trans_b = transpose::conjugate; });
    CHECK_FALSE([&] {
        gemm transposed = refused.good();
        transposed.trans_a = transpose::yes;
        return transposed.check();
    }());
    using wide = blas::gemm_ex<half>;
    CHECK_FALSE(wide{.a = elements<half>(3, 0), .b = elements<half>(3, 1), .c = elements(1, 2), .m = 1, .n = 1, .k = 3}
                    .check());
}

TEST_CASE("products of the same sizes in a list")
{
    using gemm = blas::gemm_batched<float>;
    gemm good{.m = 3, .n = 5, .k = 4};
    for (std::uint32_t i = 0; i < 3; ++i)
        good.add(elements(12, 3 * i), elements(20, 3 * i + 1), elements(15, 3 * i + 2));
    const refusals refused(good);
    refused(invalid, "count is 0", [](gemm& o) { o.count = 0; });
    refused(invalid, "count is 33, must be at most 32", [](gemm& o) { o.count = 33; });
    refused(invalid, "count is 18446744073709551615, must be at most 32", [](gemm& o) { o.count = huge; });
    refused(invalid, "product 2 has a buffer, but count is 2", [](gemm& o) { o.count = 2; });
    refused(invalid, "a[3] has no buffer", [](gemm& o) { o.count = 4; });
    refused(invalid, "a[0] has no buffer", [](gemm& o) { o.a[0] = {}; });
    refused(invalid, "b[1] has no buffer", [](gemm& o) { o.b[1] = {}; });
    refused(invalid, "c[2] has no buffer", [](gemm& o) { o.c[2] = {}; });
    refused(invalid, "m is 0", [](gemm& o) { o.m = 0; });
    refused(invalid, "n is 0", [](gemm& o) { o.n = 0; });
    refused(invalid, "k is 0", [](gemm& o) { o.k = 0; });
    refused(invalid, "trans_a is 3, which is not a blas::transpose", [](gemm& o) { o.trans_a = transpose(3); });
    refused(invalid, "trans_b is 3, which is not a blas::transpose", [](gemm& o) { o.trans_b = transpose(3); });
    refused(invalid, "math is 3, which is not a blas::math", [](gemm& o) { o.math = blas::math(3); });
    refused(errc::size_overflow, "m * n * k overflows 64 bits: m is 3, n is 5, k is 18446744073709551615",
            [](gemm& o) { o.k = huge; });
    refused(leading, "lda of product 0 is 2, a[0] has 3 rows", [](gemm& o) { o.lda = 2; });
    refused(leading, "ldb of product 0 is 3, b[0] has 4 rows", [](gemm& o) { o.ldb = 3; });
    refused(leading, "ldc of product 0 is 1, c[0] has 3 rows", [](gemm& o) { o.ldc = 1; });
    refused(leading, "lda of product 0 is 3, a[0] has 4 rows", [](gemm& o) { o.lda = 3, o.trans_a = transpose::yes; });
    refused(bounds, "a[2] has 11 elements, needs 12", [](gemm& o) { o.a[2] = elements(11, 6); });
    refused(bounds, "b[1] has 0 elements, needs 20", [](gemm& o) { o.b[1] = ref<float>(); });
    refused(bounds, "c[1] has 14 elements, needs 15", [](gemm& o) { o.c[1] = elements(14, 5); });
    refused(errc::size_overflow, "the number of elements that b[0] needs overflows 64 bits",
            [](gemm& o) { o.ldb = huge; });
}

TEST_CASE("products of different sizes in a list")
{
    using gemm = blas::gemm_grouped<float>;
    gemm good;
    good.add({.a = elements(12, 0), .b = elements(20, 1), .c = elements(15, 2), .m = 3, .n = 5, .k = 4});
    good.add({.a = elements(4, 3), .b = elements(4, 4), .c = elements(4, 5), .m = 2, .n = 2, .k = 2});
    const refusals refused(good);
    refused(invalid, "count is 0", [](gemm& o) { o.count = 0; });
    refused(invalid, "count is 40, must be at most 32", [](gemm& o) { o.count = 40; });
    refused(invalid, "product 1 has a buffer, but count is 1", [](gemm& o) { o.count = 1; });
    refused(invalid, "c[1] has no buffer", [](gemm& o) { o.c[1] = {}; });
    refused(invalid, "math is 7, which is not a blas::math", [](gemm& o) { o.math = blas::math(7); });
    const auto sizes = [](const char* are) { return std::string("the sizes of product 1 are invalid: ") + are; };
    refused(invalid, sizes("m is 0, n is 2, k is 2, trans_a is 0, trans_b is 0"), [](gemm& o) { o.m[1] = 0; });
    refused(invalid, sizes("m is 2, n is 0, k is 2, trans_a is 0, trans_b is 0"), [](gemm& o) { o.n[1] = 0; });
    refused(invalid, sizes("m is 2, n is 2, k is 0, trans_a is 1, trans_b is 0"),
            [](gemm& o) { o.k[1] = 0, o.trans_a[1] = transpose::yes; });
    refused(invalid, sizes("m is 2, n is 2, k is 2, trans_a is 0, trans_b is 3"),
            [](gemm& o) { o.trans_b[1] = transpose(3); });
    refused(errc::size_overflow, sizes("m is 2, n is 2, k is 18446744073709551615, trans_a is 0, trans_b is 0"),
            [](gemm& o) { o.k[1] = huge; });
    refused(leading, "lda of product 1 is 1, a[1] has 2 rows", [](gemm& o) { o.lda[1] = 1; });
    refused(leading, "ldb of product 0 is 3, b[0] has 4 rows", [](gemm& o) { o.ldb[0] = 3; });
    refused(leading, "ldc of product 1 is 1, c[1] has 2 rows", [](gemm& o) { o.ldc[1] = 1; });
    refused(bounds, "a[0] has 12 elements, needs 15", [](gemm& o) { o.lda[0] = 4; });
    refused(bounds, "b[1] has 3 elements, needs 4", [](gemm& o) { o.b[1] = elements(3, 4); });
    refused(bounds, "c[1] has 4 elements, needs 5", [](gemm& o) { o.ldc[1] = 3; });
    refused(errc::size_overflow, "the number of elements that a[1] needs overflows 64 bits",
            [](gemm& o) { o.lda[1] = huge; });
}

TEST_CASE("a list of products overwrites its results if no product keeps an element")
{
    blas::gemm_batched<float> batched{.m = 3, .n = 5, .k = 4};
    batched.add(elements(12, 0), elements(20, 1), elements(15, 2))
        .add(elements(12, 3), elements(20, 4), elements(15, 5));
    CHECK(batched.overwrites());
    batched.ldc = 4;
    CHECK_FALSE(batched.overwrites());
    batched.ldc = 3;
    CHECK(batched.overwrites());
    batched.beta = 1;
    CHECK_FALSE(batched.overwrites());
    batched.beta = 0;
    batched.c[1] = elements(16, 5);
    CHECK_FALSE(batched.overwrites());

    blas::gemm_grouped<float> grouped;
    const blas::gemm<float> one{
        .a = elements(12, 0), .b = elements(20, 1), .c = elements(15, 2), .m = 3, .n = 5, .k = 4};
    grouped.add(one).add(one);
    CHECK(grouped.overwrites());
    grouped.beta[1] = 1;
    CHECK_FALSE(grouped.overwrites());
    grouped.beta[1] = 0;
    grouped.ldc[0] = 4;
    CHECK_FALSE(grouped.overwrites());
    grouped.ldc[0] = 0;
    grouped.c[1] = elements(16, 5);
    CHECK_FALSE(grouped.overwrites());
}

TEST_CASE("a product of a list has the fields of the gemm that was added")
{
    const blas::gemm<double> given{.a = elements<double>(100, 0),
                                   .b = elements<double>(100, 1),
                                   .c = elements<double>(100, 2),
                                   .m = 3,
                                   .n = 5,
                                   .k = 4,
                                   .alpha = 2,
                                   .beta = 3,
                                   .trans_a = transpose::yes,
                                   .trans_b = transpose::conjugate,
                                   .lda = 6,
                                   .ldb = 7,
                                   .ldc = 8};
    blas::gemm_grouped<double> list;
    list.add({}).add(given);
    REQUIRE(list.count == 2);
    CHECK(list.a[1].raw == given.a.raw);
    CHECK(list.b[1].raw == given.b.raw);
    CHECK(list.c[1].raw == given.c.raw);
    const auto p = list.product(1);
    CHECK(p.m == 3);
    CHECK(p.n == 5);
    CHECK(p.k == 4);
    CHECK(p.alpha == 2);
    CHECK(p.beta == 3);
    CHECK(p.trans_a == transpose::yes);
    CHECK(p.trans_b == transpose::conjugate);
    CHECK(p.lda == 6);
    CHECK(p.ldb == 7);
    CHECK(p.ldc == 8);
    // A gemm without buffers is not one without operands.
    CHECK(list.a[0].has_value());
    CHECK_FALSE(list.a[2].has_value());
}

TEST_CASE("batches of products with vectors")
{
    using gemv = blas::gemv_strided_batched<half>;
    const refusals refused(gemv{.a = elements<half>(15, 0),
                                .x = elements<half>(10, 1),
                                .y = elements<half>(6, 2),
                                .m = 3,
                                .n = 5,
                                .batch = 2,
                                .stride_x = 5,
                                .stride_y = 3});
    refused(invalid, "trans is 3, which is not a blas::transpose", [](gemv& o) { o.trans = transpose(3); });
    refused(invalid, "m is 0", [](gemv& o) { o.m = 0; });
    refused(invalid, "n is 0", [](gemv& o) { o.n = 0; });
    refused(invalid, "batch is 0", [](gemv& o) { o.batch = 0; });
    refused(invalid, "incx is 0", [](gemv& o) { o.incx = 0; });
    refused(invalid, "incy is 0", [](gemv& o) { o.incy = 0; });
    refused(leading, "lda is 2, a has 3 rows", [](gemv& o) { o.lda = 2; });
    refused(bounds, "a has 15 elements, needs 16", [](gemv& o) { o.stride_a = 1; });
    refused(bounds, "x has 10 elements, needs 11", [](gemv& o) { o.stride_x = 6; });
    refused(bounds, "y has 6 elements, needs 8", [](gemv& o) { o.incy = -2; });
    refused(invalid, "stride_y is 2: the vectors of y have elements in common", [](gemv& o) { o.stride_y = 2; });
    refused(invalid, "stride_y is 0: the vectors of y have elements in common", [](gemv& o) { o.stride_y = 0; });
    refused(errc::size_overflow, "the number of elements that a needs overflows 64 bits",
            [](gemv& o) { o.stride_a = huge; });
}

TEST_SUITE_END();

} // namespace test_ops_blas_messages
