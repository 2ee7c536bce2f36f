#include "support/refusals.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace test_ops_blas_batches_messages {

// The error messages of refused ops on batches: op, field and value.
namespace {

using namespace coaccel;
using test::elements;
using test::refusals;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t too_large = std::uint64_t(1) << 31;
constexpr auto invalid = errc::invalid_argument;
constexpr auto bounds = errc::out_of_bounds;
constexpr auto leading = errc::leading_dimension;
constexpr auto length = errc::length_mismatch;
constexpr auto overflow = errc::size_overflow;

/// A is 3 by 3, in batches of 2.
template <class Op>
void check_square(const refusals<Op>& refused)
{
    refused(invalid, "n is 0", [](Op& o) { o.n = 0; });
    refused(invalid, "n is 2147483648, must be at most 2147483647", [](Op& o) { o.n = too_large; });
    refused(invalid, "batch is 0", [](Op& o) { o.batch = 0; });
    refused(invalid, "batch is 2147483648, must be at most 2147483647", [](Op& o) { o.batch = too_large; });
    refused(leading, "lda is 2, a has 3 rows", [](Op& o) { o.lda = 2; });
    refused(invalid, "one matrix of a spans 6442450944 elements with lda 2147483648, must be at most 2147483647",
            [](Op& o) { o.lda = too_large; });
    refused(invalid, "one matrix of a spans 2147488281 elements with lda 46341, must be at most 2147483647",
            [](Op& o) { o.n = 46341; });
    refused(overflow, "the number of elements that a needs overflows 64 bits", [](Op& o) { o.lda = huge; });
    refused(bounds, "a has 18 elements, needs 19", [](Op& o) { o.stride_a = 10; });
    refused(overflow, "the number of elements that a needs overflows 64 bits", [](Op& o) { o.stride_a = huge; });
}

/// A is written.
template <class Op>
void check_square_in_place(const refusals<Op>& refused)
{
    check_square(refused);
    refused(leading, "stride_a is 8, one matrix of a has 9 elements", [](Op& o) { o.stride_a = 8; });
    refused(leading, "stride_a is 9, one matrix of a has 11 elements", [](Op& o) { o.lda = 4; });
}

/// A is read.
template <class Op>
void check_square_input(const refusals<Op>& refused)
{
    check_square(refused);
    refused(bounds, "a has 18 elements, needs 20", [](Op& o) { o.lda = 4; });
    auto one = refused.good();
    one.stride_a = 0;
    one.a = elements<typename Op::value_type>(9, 0);
    CHECK_FALSE(one.check());
}

template <class Op>
void check_info(const refusals<Op>& refused)
{
    refused(length, "info has 3 elements, must have 2", [](Op& o) { o.info = elements<std::int32_t>(3, 3); });
    refused(length, "info has 1 elements, must have 2", [](Op& o) { o.info = elements<std::int32_t>(1, 3); });
}

template <class Op>
void check_pivots(const refusals<Op>& refused)
{
    refused(length, "pivots has 7 elements, must have 6", [](Op& o) { o.pivots = elements<std::int32_t>(7, 2); });
    refused(length, "pivots has 3 elements, must have 6", [](Op& o) { o.pivots = elements<std::int32_t>(3, 2); });
}

template <class Op>
void check_solve(const refusals<Op>& refused)
{
    check_square_input(refused);
    refused(invalid, "trans is 3, which is not a blas::transpose", [](Op& o) { o.trans = blas::transpose(3); });
    refused(invalid, "nrhs is 0", [](Op& o) { o.nrhs = 0; });
    refused(invalid, "nrhs is 2147483648, must be at most 2147483647", [](Op& o) { o.nrhs = too_large; });
    refused(leading, "ldb is 2, b has 3 rows", [](Op& o) { o.ldb = 2; });
    refused(invalid, "one matrix of b spans 4294967296 elements with ldb 2147483648, must be at most 2147483647",
            [](Op& o) { o.ldb = too_large; });
    refused(invalid, "one matrix of b spans 2147483649 elements with ldb 3, must be at most 2147483647",
            [](Op& o) { o.nrhs = 715827883; });
    refused(leading, "stride_b is 5, one matrix of b has 6 elements", [](Op& o) { o.stride_b = 5; });
    refused(bounds, "b has 12 elements, needs 13", [](Op& o) { o.stride_b = 7; });
}

template <class Op>
void check_inverse(const refusals<Op>& refused)
{
    check_square_input(refused);
    check_info(refused);
    refused(leading, "ldc is 2, c has 3 rows", [](Op& o) { o.ldc = 2; });
    refused(invalid, "one matrix of c spans 6442450944 elements with ldc 2147483648, must be at most 2147483647",
            [](Op& o) { o.ldc = too_large; });
    refused(leading, "stride_c is 8, one matrix of c has 9 elements", [](Op& o) { o.stride_c = 8; });
    refused(bounds, "c has 18 elements, needs 19", [](Op& o) { o.stride_c = 10; });
}

} // namespace

TEST_SUITE_BEGIN("blas messages, batches");

TEST_CASE("LU factorizations of batches")
{
    const auto a = elements(18, 0);
    const auto pivots = elements<std::int32_t>(6, 2), info = elements<std::int32_t>(2, 3);
    using getrf = blas::getrf_batched<float>;
    const refusals refused(getrf{.a = a, .pivots = pivots, .info = info, .n = 3, .batch = 2, .stride_a = 9});
    check_square_in_place(refused);
    check_info(refused);
    check_pivots(refused);
    using without = blas::getrf_nopivot_batched<float>;
    const refusals refused_without(without{.a = a, .info = info, .n = 3, .batch = 2, .stride_a = 9});
    check_square_in_place(refused_without);
    check_info(refused_without);
    // The stride of a single matrix and the leading dimension of a single column have no meaning.
    CHECK_FALSE(getrf{.a = a,
                      .pivots = pivots.subspan(0, 1),
                      .info = info.subspan(0, 1),
                      .n = 1,
                      .batch = 1,
                      .stride_a = huge,
                      .lda = huge}
                    .check());
    // The largest matrix.
    constexpr std::uint64_t n = 46340;
    CHECK_FALSE(without{.a = elements(n * n, 0), .info = info.subspan(0, 1), .n = n, .batch = 1}.check());
}

TEST_CASE("equations and inverses of factorized batches")
{
    const auto a = elements(18, 0), b = elements(12, 1), c = elements(18, 1);
    const auto pivots = elements<std::int32_t>(6, 2), info = elements<std::int32_t>(2, 3);
    const refusals solve(blas::getrs_batched<float>{
        .a = a, .pivots = pivots, .b = b, .n = 3, .nrhs = 2, .batch = 2, .stride_a = 9, .stride_b = 6});
    check_solve(solve);
    check_pivots(solve);
    check_solve(refusals(blas::getrs_nopivot_batched<float>{
        .a = a, .b = b, .n = 3, .nrhs = 2, .batch = 2, .stride_a = 9, .stride_b = 6}));
    const refusals invert(blas::getri_batched<float>{
        .a = a, .pivots = pivots, .c = c, .info = info, .n = 3, .batch = 2, .stride_a = 9, .stride_c = 9});
    check_inverse(invert);
    check_pivots(invert);
    check_inverse(refusals(blas::getri_nopivot_batched<float>{
        .a = a, .c = c, .info = info, .n = 3, .batch = 2, .stride_a = 9, .stride_c = 9}));
}

TEST_CASE("QR factorizations and least squares of batches")
{
    using geqrf = blas::geqrf_batched<double>;
    const refusals refused(
        geqrf{.a = elements<double>(30, 0), .tau = elements<double>(6, 1), .m = 5, .n = 3, .batch = 2, .stride_a = 15});
    refused(invalid, "m is 0", [](geqrf& o) { o.m = 0; });
    refused(invalid, "m is 2147483648, must be at most 2147483647", [](geqrf& o) { o.m = too_large; });
    refused(invalid, "n is 0", [](geqrf& o) { o.n = 0; });
    refused(invalid, "n is 2147483648, must be at most 2147483647", [](geqrf& o) { o.n = too_large; });
    refused(invalid, "batch is 0", [](geqrf& o) { o.batch = 0; });
    refused(invalid, "batch is 2147483648, must be at most 2147483647", [](geqrf& o) { o.batch = too_large; });
    refused(leading, "lda is 4, a has 5 rows", [](geqrf& o) { o.lda = 4; });
    refused(invalid, "one matrix of a spans 6442450944 elements with lda 2147483648, must be at most 2147483647",
            [](geqrf& o) { o.lda = too_large; });
    refused(invalid, "one matrix of a spans 2147483650 elements with lda 5, must be at most 2147483647",
            [](geqrf& o) { o.n = 429496730; });
    refused(leading, "stride_a is 14, one matrix of a has 15 elements", [](geqrf& o) { o.stride_a = 14; });
    refused(bounds, "a has 30 elements, needs 31", [](geqrf& o) { o.stride_a = 16; });
    refused(length, "tau has 6 elements, must have 4", [](geqrf& o) { o.m = 2; });
    using gels = blas::gels_batched<double>;
    const refusals refused_gels(gels{.a = elements<double>(30, 0),
                                     .c = elements<double>(20, 1),
                                     .info = elements<std::int32_t>(2, 3),
                                     .m = 5,
                                     .n = 3,
                                     .nrhs = 2,
                                     .batch = 2,
                                     .stride_a = 15,
                                     .stride_c = 10});
    refused_gels(invalid, "m is 0", [](gels& o) { o.m = 0; });
    refused_gels(invalid, "n is 0", [](gels& o) { o.n = 0; });
    refused_gels(invalid, "m is 5, less than n, which is 6", [](gels& o) { o.n = 6; });
    refused_gels(invalid, "nrhs is 0", [](gels& o) { o.nrhs = 0; });
    refused_gels(invalid, "nrhs is 2147483648, must be at most 2147483647", [](gels& o) { o.nrhs = too_large; });
    refused_gels(invalid, "batch is 0", [](gels& o) { o.batch = 0; });
    refused_gels(leading, "lda is 4, a has 5 rows", [](gels& o) { o.lda = 4; });
    refused_gels(leading, "ldc is 4, c has 5 rows", [](gels& o) { o.ldc = 4; });
    refused_gels(invalid, "one matrix of c spans 4294967296 elements with ldc 2147483648, must be at most 2147483647",
                 [](gels& o) { o.ldc = too_large; });
    refused_gels(invalid, "one matrix of a spans 2147483649 elements with lda 715827883, must be at most 2147483647",
                 [](gels& o) { o.m = 715827883; });
    refused_gels(invalid, "one matrix of c spans 2147483650 elements with ldc 5, must be at most 2147483647",
                 [](gels& o) { o.nrhs = 429496730; });
    refused_gels(leading, "stride_a is 14, one matrix of a has 15 elements", [](gels& o) { o.stride_a = 14; });
    refused_gels(leading, "stride_c is 9, one matrix of c has 10 elements", [](gels& o) { o.stride_c = 9; });
    refused_gels(bounds, "c has 20 elements, needs 21", [](gels& o) { o.stride_c = 11; });
    check_info(refused_gels);
}

TEST_CASE("triangular equations of batches")
{
    using trsm = blas::trsm_batched<float>;
    const refusals refused(
        trsm{.a = elements(18, 0), .b = elements(30, 1), .m = 3, .n = 5, .batch = 2, .stride_a = 9, .stride_b = 15});
    refused(invalid, "side is 2, which is not a blas::side", [](trsm& o) { o.side = blas::side(2); });
    refused(invalid, "uplo is 2, which is not a blas::uplo", [](trsm& o) { o.uplo = blas::uplo(2); });
    refused(invalid, "trans is 3, which is not a blas::transpose", [](trsm& o) { o.trans = blas::transpose(3); });
    refused(invalid, "diag is 2, which is not a blas::diag", [](trsm& o) { o.diag = blas::diag(2); });
    refused(invalid, "m is 0", [](trsm& o) { o.m = 0; });
    refused(invalid, "n is 0", [](trsm& o) { o.n = 0; });
    refused(invalid, "batch is 0", [](trsm& o) { o.batch = 0; });
    refused(leading, "lda is 2, a has 3 rows", [](trsm& o) { o.lda = 2; });
    refused(leading, "ldb is 2, b has 3 rows", [](trsm& o) { o.ldb = 2; });
    refused(bounds, "a has 18 elements, needs 34", [](trsm& o) { o.side = blas::side::right; });
    refused(leading, "stride_b is 14, one matrix of b has 15 elements", [](trsm& o) { o.stride_b = 14; });
    refused(bounds, "b has 30 elements, needs 31", [](trsm& o) { o.stride_b = 16; });
    refused(overflow, "the number of elements that a needs overflows 64 bits", [](trsm& o) { o.stride_a = huge; });
    CHECK_FALSE(trsm{.a = elements(9, 0), .b = elements(30, 1), .m = 3, .n = 5, .batch = 2, .stride_b = 15}.check());
}

TEST_SUITE_END();

} // namespace test_ops_blas_batches_messages
