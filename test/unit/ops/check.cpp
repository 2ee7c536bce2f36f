#include "support/refusals.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace test_ops_check {

namespace {

using namespace coaccel;
using blas::transpose;
using test::elements;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();
constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto neither = static_cast<transpose>(3);

struct row {
    const char* name;
    error_code got;
    errc wanted;
};

void check(const std::vector<row>& rows)
{
    for (const auto& r : rows) {
        CAPTURE(r.name);
        CHECK(errc_of(r.got) == r.wanted);
    }
}

constexpr errc fine{};

// A valid gemm, in which each case invalidates one field.
blas::gemm<float> gemm()
{
    return {.a = elements(12, 0), .b = elements(20, 1), .c = elements(15, 2), .m = 3, .n = 5, .k = 4};
}

blas::gemm_strided_batched<float> batched()
{
    return {.a = elements(24, 0),
            .b = elements(40, 1),
            .c = elements(30, 2),
            .m = 3,
            .n = 5,
            .k = 4,
            .batch = 2,
            .stride_a = 12,
            .stride_b = 20,
            .stride_c = 15};
}

blas::gemv<float> gemv()
{
    return {.a = elements(12, 0), .x = elements(4, 1), .y = elements(3, 2), .m = 3, .n = 4};
}

blas::ger<float> ger()
{
    return {.x = elements(3, 0), .y = elements(4, 1), .a = elements(12, 2), .m = 3, .n = 4};
}

template <class Op, class Change>
error_code check_with(Op op, Change change)
{
    change(op);
    return op.check();
}

template <class Op>
std::vector<row> two_vector_rows()
{
    const auto x = elements(8, 0);
    const auto y = elements(8, 1);
    return {
        {"right", Op{.x = x, .y = y, .n = 8}.check(), fine},
        {"shorter than the refs", Op{.x = x, .y = y, .n = 3}.check(), fine},
        {"both backwards", Op{.x = x, .y = y, .n = 8, .incx = -1, .incy = -1}.check(), fine},
        {"spread", Op{.x = x, .y = y, .n = 4, .incx = 2, .incy = -2}.check(), fine},
        {"no elements", Op{.x = x, .y = y}.check(), errc::invalid_argument},
        {"x does not move", Op{.x = x, .y = y, .n = 8, .incx = 0}.check(), errc::invalid_argument},
        {"y does not move", Op{.x = x, .y = y, .n = 8, .incy = 0}.check(), errc::invalid_argument},
        {"x too short", Op{.x = x.first(7), .y = y, .n = 8}.check(), errc::out_of_bounds},
        {"y too short", Op{.x = x, .y = y.first(7), .n = 8}.check(), errc::out_of_bounds},
        {"x too spread", Op{.x = x, .y = y, .n = 5, .incx = 2}.check(), errc::out_of_bounds},
        {"y too spread backwards", Op{.x = x, .y = y, .n = 5, .incy = -2}.check(), errc::out_of_bounds},
        {"no buffers", check_with(Op(), [](Op& o) { o.n = 1; }), errc::out_of_bounds},
        {"absurdly many", Op{.x = x, .y = y, .n = huge}.check(), errc::out_of_bounds},
        {"extent overflows", Op{.x = x, .y = y, .n = huge, .incx = 2}.check(), errc::size_overflow},
        {"extent of y overflows", Op{.x = x, .y = y, .n = 3, .incy = least}.check(), errc::size_overflow},
        {"one element, least increment", Op{.x = x, .y = y, .n = 1, .incx = 1, .incy = least}.check(), fine},
        {"one element, extreme increments", Op{.x = x, .y = y, .n = 1, .incx = most, .incy = least}.check(), fine},
    };
}

template <class Op>
std::vector<row> one_vector_rows()
{
    const auto x = elements(8, 0);
    return {
        {"right", Op{.x = x, .n = 8}.check(), fine},
        {"backwards", Op{.x = x, .n = 4, .incx = -2}.check(), fine},
        {"no elements", Op{.x = x}.check(), errc::invalid_argument},
        {"does not move", Op{.x = x, .n = 8, .incx = 0}.check(), errc::invalid_argument},
        {"too short", Op{.x = x, .n = 9}.check(), errc::out_of_bounds},
        {"too spread", Op{.x = x, .n = 5, .incx = 2}.check(), errc::out_of_bounds},
        {"too spread backwards", Op{.x = x, .n = 5, .incx = -2}.check(), errc::out_of_bounds},
        {"extent overflows", Op{.x = x, .n = huge, .incx = most}.check(), errc::size_overflow},
        {"extent is all there is", Op{.x = x, .n = huge}.check(), errc::out_of_bounds},
        {"least increment overflows", Op{.x = x, .n = 3, .incx = least}.check(), errc::size_overflow},
        {"least increment is out of reach", Op{.x = x, .n = 2, .incx = least}.check(), errc::out_of_bounds},
        {"no buffer", check_with(Op(), [](Op& o) { o.n = 1; }), errc::out_of_bounds},
    };
}

} // namespace

TEST_SUITE_BEGIN("op checks");

TEST_CASE("ops on two vectors check their arguments")
{
    check(two_vector_rows<blas::axpy<float>>());
    check(two_vector_rows<blas::copy<float>>());
    check(two_vector_rows<blas::swap<float>>());
    check(two_vector_rows<blas::dot<float>>());
}

TEST_CASE("ops on one vector check their arguments")
{
    check(one_vector_rows<blas::scal<float>>());
    check(one_vector_rows<blas::nrm2<float>>());
    check(one_vector_rows<blas::asum<float>>());
    check(one_vector_rows<blas::iamax<float>>());
}

TEST_CASE("a written vector may not touch another vector")
{
    const auto all = elements(64, 0);
    using axpy = blas::axpy<float>;
    check({
        {"itself", axpy{.x = all, .y = all, .n = 64}.check(), errc::overlap},
        {"itself backwards", axpy{.x = all, .y = all, .n = 64, .incx = -1}.check(), errc::overlap},
        {"neighbours", axpy{.x = all.subspan(0, 32), .y = all.subspan(32, 32), .n = 32}.check(), fine},
        {"one in common", axpy{.x = all.subspan(0, 32), .y = all.subspan(31, 32), .n = 32}.check(), errc::overlap},
        {"interleaved", axpy{.x = all.subspan(0, 63), .y = all.subspan(1, 63), .n = 32, .incx = 2, .incy = 2}.check(),
         fine},
        {"interleaved, the same",
         axpy{.x = all.subspan(0, 61), .y = all.subspan(2, 61), .n = 31, .incx = 2, .incy = 2}.check(), errc::overlap},
        {"the unused tails overlap", axpy{.x = all, .y = all.subspan(8, 56), .n = 8}.check(), fine},
        {"dot reads only", blas::dot<float>{.x = all, .y = all, .n = 64}.check(), fine},
        {"one place, least increment", axpy{.x = all, .y = all, .n = 1, .incx = 1, .incy = least}.check(),
         errc::overlap},
    });
}

TEST_CASE("gemv checks its arguments")
{
    using op = blas::gemv<float>;
    check({
        {"right", gemv().check(), fine},
        {"no rows", check_with(gemv(), [](op& o) { o.m = 0; }), errc::invalid_argument},
        {"no columns", check_with(gemv(), [](op& o) { o.n = 0; }), errc::invalid_argument},
        {"not a transpose", check_with(gemv(), [](op& o) { o.trans = neither; }), errc::invalid_argument},
        {"lda too small", check_with(gemv(), [](op& o) { o.lda = 2; }), errc::leading_dimension},
        {"lda right", check_with(gemv(), [](op& o) { o.lda = 3; }), fine},
        {"lda too large", check_with(gemv(), [](op& o) { o.lda = 4; }), errc::out_of_bounds},
        {"lda larger, in a larger buffer",
         check_with(gemv(),
                    [](op& o) {
                        o.lda = 4;
                        o.a = elements(15, 0);
                    }),
         fine},
        {"A too short", check_with(gemv(), [](op& o) { o.a = elements(11, 0); }), errc::out_of_bounds},
        {"x too short", check_with(gemv(), [](op& o) { o.x = elements(3, 1); }), errc::out_of_bounds},
        {"y too short", check_with(gemv(), [](op& o) { o.y = elements(2, 2); }), errc::out_of_bounds},
        {"x does not move", check_with(gemv(), [](op& o) { o.incx = 0; }), errc::invalid_argument},
        {"y does not move", check_with(gemv(), [](op& o) { o.incy = 0; }), errc::invalid_argument},
        {"transposed, x and y too short", check_with(gemv(), [](op& o) { o.trans = transpose::yes; }),
         errc::out_of_bounds},
        {"transposed",
         check_with(gemv(),
                    [](op& o) {
                        o.trans = transpose::yes;
                        std::swap(o.x.raw, o.y.raw);
                    }),
         fine},
        {"m * n overflows", check_with(gemv(), [](op& o) { o.m = o.n = std::uint64_t(1) << 32; }), errc::size_overflow},
        {"lda overflows", check_with(gemv(), [](op& o) { o.lda = huge; }), errc::size_overflow},
        {"x overflows", check_with(gemv(), [](op& o) { o.incx = least; }), errc::size_overflow},
        {"y overflows",
         check_with(gemv(),
                    [](op& o) {
                        o.incy = most;
                        o.m = 3;
                    }),
         errc::out_of_bounds},
    });
}

TEST_CASE("ger checks its arguments")
{
    using op = blas::ger<float>;
    check({
        {"right", ger().check(), fine},
        {"no rows", check_with(ger(), [](op& o) { o.m = 0; }), errc::invalid_argument},
        {"no columns", check_with(ger(), [](op& o) { o.n = 0; }), errc::invalid_argument},
        {"lda too small", check_with(ger(), [](op& o) { o.lda = 1; }), errc::leading_dimension},
        {"A too short", check_with(ger(), [](op& o) { o.lda = 5; }), errc::out_of_bounds},
        {"x too short", check_with(ger(), [](op& o) { o.x = elements(2, 0); }), errc::out_of_bounds},
        {"y too short", check_with(ger(), [](op& o) { o.y = elements(3, 1); }), errc::out_of_bounds},
        {"x does not move", check_with(ger(), [](op& o) { o.incx = 0; }), errc::invalid_argument},
        {"y does not move", check_with(ger(), [](op& o) { o.incy = 0; }), errc::invalid_argument},
        {"m * n overflows", check_with(ger(), [](op& o) { o.m = o.n = std::uint64_t(1) << 33; }), errc::size_overflow},
    });
}

TEST_CASE("gemm checks its arguments")
{
    using op = blas::gemm<float>;
    check({
        {"right", gemm().check(), fine},
        {"m zero", check_with(gemm(), [](op& o) { o.m = 0; }), errc::invalid_argument},
        {"n zero", check_with(gemm(), [](op& o) { o.n = 0; }), errc::invalid_argument},
        {"k zero", check_with(gemm(), [](op& o) { o.k = 0; }), errc::invalid_argument},
        {"trans_a is neither", check_with(gemm(), [](op& o) { o.trans_a = neither; }), errc::invalid_argument},
        {"trans_b is neither", check_with(gemm(), [](op& o) { o.trans_b = neither; }), errc::invalid_argument},
        {"lda too small", check_with(gemm(), [](op& o) { o.lda = 2; }), errc::leading_dimension},
        {"lda too small, transposed",
         check_with(gemm(),
                    [](op& o) {
                        o.trans_a = transpose::yes;
                        o.lda = 3;
                    }),
         errc::leading_dimension},
        {"ldb too small", check_with(gemm(), [](op& o) { o.ldb = 3; }), errc::leading_dimension},
        {"ldb too small, transposed",
         check_with(gemm(),
                    [](op& o) {
                        o.trans_b = transpose::yes;
                        o.ldb = 4;
                    }),
         errc::leading_dimension},
        {"ldc too small", check_with(gemm(), [](op& o) { o.ldc = 2; }), errc::leading_dimension},
        {"transposed, packed", check_with(gemm(), [](op& o) { o.trans_a = o.trans_b = transpose::yes; }), fine},
        {"A too short", check_with(gemm(), [](op& o) { o.a = elements(11, 0); }), errc::out_of_bounds},
        {"B too short", check_with(gemm(), [](op& o) { o.b = elements(19, 1); }), errc::out_of_bounds},
        {"C too short", check_with(gemm(), [](op& o) { o.c = elements(14, 2); }), errc::out_of_bounds},
        {"C too short for ldc", check_with(gemm(), [](op& o) { o.ldc = 4; }), errc::out_of_bounds},
        {"the last column need not be padded",
         check_with(gemm(),
                    [](op& o) {
                        o.ldc = 4;
                        o.c = elements(19, 2);
                    }),
         fine},
        {"m * n overflows", check_with(gemm(), [](op& o) { o.m = o.n = std::uint64_t(1) << 32; }), errc::size_overflow},
        {"m * n * k overflows", check_with(gemm(), [](op& o) { o.m = o.n = o.k = std::uint64_t(1) << 22; }),
         errc::size_overflow},
        {"m * n * k just fits", check_with(gemm(), [](op& o) { o.m = o.n = o.k = std::uint64_t(1) << 21; }),
         errc::out_of_bounds},
        {"lda overflows", check_with(gemm(), [](op& o) { o.lda = huge; }), errc::size_overflow},
        {"ldc overflows", check_with(gemm(), [](op& o) { o.ldc = huge / 3; }), errc::size_overflow},
        {"absurd",
         check_with(gemm(),
                    [](op& o) {
                        o.m = huge;
                        o.n = 1;
                        o.k = 1;
                    }),
         errc::out_of_bounds},
        {"all absurd", check_with(gemm(), [](op& o) { o.m = o.n = o.k = huge; }), errc::size_overflow},
        {"nothing set", blas::gemm<double>{}.check(), errc::invalid_argument},
    });
}

TEST_CASE("gemm_strided_batched checks its arguments")
{
    using op = blas::gemm_strided_batched<float>;
    check({
        {"right", batched().check(), fine},
        {"no batch", check_with(batched(), [](op& o) { o.batch = 0; }), errc::invalid_argument},
        {"k zero", check_with(batched(), [](op& o) { o.k = 0; }), errc::invalid_argument},
        {"trans_a is neither", check_with(batched(), [](op& o) { o.trans_a = neither; }), errc::invalid_argument},
        {"trans_b is neither", check_with(batched(), [](op& o) { o.trans_b = neither; }), errc::invalid_argument},
        {"one A",
         check_with(batched(),
                    [](op& o) {
                        o.stride_a = 0;
                        o.a = elements(12, 0);
                    }),
         fine},
        {"one B",
         check_with(batched(),
                    [](op& o) {
                        o.stride_b = 0;
                        o.b = elements(20, 1);
                    }),
         fine},
        {"one C", check_with(batched(), [](op& o) { o.stride_c = 0; }), errc::leading_dimension},
        {"one C, one product",
         check_with(batched(),
                    [](op& o) {
                        o.stride_c = 0;
                        o.batch = 1;
                    }),
         fine},
        {"C's matrices overlap by one", check_with(batched(), [](op& o) { o.stride_c = 14; }), errc::leading_dimension},
        {"A's matrices overlap", check_with(batched(), [](op& o) { o.stride_a = 1; }), fine},
        {"lda too small", check_with(batched(), [](op& o) { o.lda = 2; }), errc::leading_dimension},
        {"ldb too small", check_with(batched(), [](op& o) { o.ldb = 3; }), errc::leading_dimension},
        {"ldc too small", check_with(batched(), [](op& o) { o.ldc = 2; }), errc::leading_dimension},
        {"A too short", check_with(batched(), [](op& o) { o.a = elements(23, 0); }), errc::out_of_bounds},
        {"B too short", check_with(batched(), [](op& o) { o.b = elements(39, 1); }), errc::out_of_bounds},
        {"C too short", check_with(batched(), [](op& o) { o.c = elements(29, 2); }), errc::out_of_bounds},
        {"stride overflows", check_with(batched(), [](op& o) { o.stride_a = huge; }), errc::size_overflow},
        {"stride of C overflows", check_with(batched(), [](op& o) { o.stride_c = huge; }), errc::size_overflow},
        {"batch overflows", check_with(batched(), [](op& o) { o.batch = huge; }), errc::size_overflow},
        {"one matrix of C overflows", check_with(batched(), [](op& o) { o.ldc = huge; }), errc::size_overflow},
        {"m * n * k overflows", check_with(batched(), [](op& o) { o.m = o.n = o.k = std::uint64_t(1) << 22; }),
         errc::size_overflow},
    });
}

TEST_CASE("memory ops check their arguments")
{
    const auto src = elements<std::int8_t>(8, 0);
    const auto dst = elements<std::int8_t>(8, 1);
    using fill = memory::fill<std::int8_t>;
    using copy = memory::copy<std::int8_t>;
    check({
        {"fill", fill{.dst = dst}.check(), fine},
        {"fill nothing", fill{.dst = dst.first(0)}.check(), errc::invalid_argument},
        {"fill nowhere", fill{}.check(), errc::invalid_argument},
        {"copy", copy{.src = src, .dst = dst}.check(), fine},
        {"copy nothing", copy{.src = src.first(0), .dst = dst.first(0)}.check(), errc::invalid_argument},
        {"copy from nowhere", check_with(copy(), [&](copy& o) { o.dst = dst; }), errc::invalid_argument},
        {"copy to less", copy{.src = src, .dst = dst.first(7)}.check(), errc::length_mismatch},
        {"copy to more", copy{.src = src.first(7), .dst = dst}.check(), errc::length_mismatch},
        {"copy to nowhere", check_with(copy(), [&](copy& o) { o.src = src; }), errc::length_mismatch},
    });
}

TEST_CASE("extents are exact up to the largest that fits")
{
    using detail::matrix_extent;
    using detail::vector_extent;
    static_assert(*vector_extent(0, 5) == 0 && *vector_extent(1, 5) == 1 && *vector_extent(4, -5) == 16);
    static_assert(*vector_extent(huge, 1) == huge && *vector_extent(huge, -1) == huge);
    static_assert(*vector_extent(2, most) == std::uint64_t(1) << 63);
    static_assert(*vector_extent(2, least) == (std::uint64_t(1) << 63) + 1 && !vector_extent(3, least));
    static_assert(*matrix_extent(0, 3, 9) == 0 && *matrix_extent(3, 0, 9) == 0);
    static_assert(*matrix_extent(3, 4, 5) == 18 && *matrix_extent(huge, 1, huge) == huge);
    static_assert(!matrix_extent(1, 3, huge) && !matrix_extent(2, 2, huge - 1) &&
                  *matrix_extent(1, 2, huge - 1) == huge);
    CHECK(detail::require("op", "x", std::nullopt, huge) == errc::size_overflow);
    CHECK(detail::require("op", "x", huge, huge) == error_code());
    CHECK(detail::require("op", "x", 1, 0) == errc::out_of_bounds);
}

TEST_SUITE_END();

} // namespace test_ops_check
