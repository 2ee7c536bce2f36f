#include "blas_calls.hpp"

namespace test_cuda_blas_level3_calls {

namespace {

using namespace coaccel;
using blas::diag;
using blas::side;
using blas::transpose;
using blas::uplo;
using test::blas_fixture;
using test::check_call;
using test::check_scaling;
using test::letter;
using test::points_to;
using test::scaled_matrix;

constexpr auto lower = CUBLAS_FILL_MODE_LOWER, upper = CUBLAS_FILL_MODE_UPPER;
constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

/// What cuBLAS gets for the conjugate transpose.
template <class T>
constexpr auto conjugate = blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T;

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(64, T(1)));
}

} // namespace

TEST_SUITE_BEGIN("calls of cuBLAS, level 3");

#define COACCEL_DENSE float, double, std::complex<float>, std::complex<double>
#define COACCEL_COMPLEX std::complex<float>, std::complex<double>

template <class Op>
void check_product_calls(const std::string& function)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f);
    check_call(f, Op{.a = a, .b = b, .c = c, .m = 3, .n = 5, .alpha = T(2), .beta = T(4)}, function, CUBLAS_SIDE_LEFT,
               lower, 3, 5, points_to{2}, a, 3, b, 3, points_to{4}, c, 3);
    check_call(f,
               Op{.a = a.subspan(7, 50),
                  .b = b.subspan(1, 40),
                  .c = c.subspan(2, 50),
                  .m = 3,
                  .n = 5,
                  .alpha = T(-1),
                  .side = side::right,
                  .uplo = uplo::upper,
                  .lda = 6,
                  .ldb = 7,
                  .ldc = 8},
               function, CUBLAS_SIDE_RIGHT, upper, 3, 5, points_to{-1}, a.subspan(7, 50), 6, b.subspan(1, 40), 7,
               points_to{0}, c.subspan(2, 50), 8);
    // A leading dimension of a single column has no meaning.
    check_call(f, Op{.a = a, .b = b, .c = c, .m = 3, .n = 1, .ldb = huge, .ldc = huge}, function, CUBLAS_SIDE_LEFT,
               lower, 3, 1, points_to{1}, a, 3, b, 3, points_to{0}, c, 3);
    // Operands that are multiplied by zero are not read.
    check_scaling(f, Op{.a = a, .b = b, .c = c, .m = 3, .n = 5, .alpha = T(0), .beta = T(4), .ldc = 7},
                  scaled_matrix<T>{.matrix = c, .rows = 3, .cols = 5, .ld = 7, .beta = 4});
}

TEST_CASE_TEMPLATE("symm", T, COACCEL_DENSE)
{
    check_product_calls<blas::symm<T>>("cublas" + letter<T>() + "symm");
}

TEST_CASE_TEMPLATE("hemm", T, COACCEL_COMPLEX)
{
    check_product_calls<blas::hemm<T>>("cublas" + letter<T>() + "hemm");
}

template <class Op>
void check_rank_k_calls(const std::string& function, transpose trans, cublasOperation_t operation)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto a = elements<T>(f), c = elements<T>(f);
    check_call(f, Op{.a = a, .c = c, .n = 3, .k = 5, .alpha = 2, .beta = 4}, function, lower, CUBLAS_OP_N, 3, 5,
               points_to{2}, a, 3, points_to{4}, c, 3);
    check_call(f, Op{.a = a, .c = c, .n = 3, .k = 5, .uplo = uplo::upper, .trans = trans}, function, upper, operation,
               3, 5, points_to{1}, a, 5, points_to{0}, c, 3);
    check_call(f, Op{.a = a, .c = c, .n = 3, .k = 5, .trans = trans, .lda = 6, .ldc = 7}, function, lower, operation, 3,
               5, points_to{1}, a, 6, points_to{0}, c, 7);
    check_call(f, Op{.a = a, .c = c, .n = 3, .k = 1, .lda = huge}, function, lower, CUBLAS_OP_N, 3, 1, points_to{1}, a,
               3, points_to{0}, c, 3);
    // Factors that are multiplied by zero are not read: the sum has no elements.
    check_call(f, Op{.a = a, .c = c, .n = 3, .k = 5, .alpha = 0, .beta = 4, .trans = trans}, function, lower, operation,
               3, 0, points_to{0}, a, 5, points_to{4}, c, 3);
}

template <class Op>
void check_rank_2k_calls(const std::string& function, transpose trans, cublasOperation_t operation)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f);
    check_call(f, Op{.a = a, .b = b, .c = c, .n = 3, .k = 5, .alpha = 2, .beta = 4}, function, lower, CUBLAS_OP_N, 3, 5,
               points_to{2}, a, 3, b, 3, points_to{4}, c, 3);
    check_call(
        f,
        Op{.a = a, .b = b, .c = c, .n = 3, .k = 5, .uplo = uplo::upper, .trans = trans, .lda = 6, .ldb = 7, .ldc = 8},
        function, upper, operation, 3, 5, points_to{1}, a, 6, b, 7, points_to{0}, c, 8);
    // Factors that are multiplied by zero are not read: the sum has no elements.
    check_call(f, Op{.a = a, .b = b, .c = c, .n = 3, .k = 5, .alpha = 0, .beta = 4}, function, lower, CUBLAS_OP_N, 3, 0,
               points_to{0}, a, 3, b, 3, points_to{4}, c, 3);
}

TEST_CASE_TEMPLATE("syrk, syr2k and syrkx", T, COACCEL_DENSE)
{
    check_rank_k_calls<blas::syrk<T>>("cublas" + letter<T>() + "syrk", transpose::yes, CUBLAS_OP_T);
    check_rank_2k_calls<blas::syr2k<T>>("cublas" + letter<T>() + "syr2k", transpose::yes, CUBLAS_OP_T);
    check_rank_2k_calls<blas::syrkx<T>>("cublas" + letter<T>() + "syrkx", transpose::yes, CUBLAS_OP_T);
    if constexpr (blas::real<T>)
        check_rank_k_calls<blas::syrk<T>>("cublas" + letter<T>() + "syrk", transpose::conjugate, CUBLAS_OP_T);
}

TEST_CASE_TEMPLATE("herk and her2k", T, COACCEL_COMPLEX)
{
    check_rank_k_calls<blas::herk<T>>("cublas" + letter<T>() + "herk", transpose::conjugate, CUBLAS_OP_C);
    check_rank_2k_calls<blas::her2k<T>>("cublas" + letter<T>() + "her2k", transpose::conjugate, CUBLAS_OP_C);
}

TEST_CASE_TEMPLATE("trmm writes its result over B", T, COACCEL_DENSE)
{
    blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f);
    const auto function = "cublas" + letter<T>() + "trmm";
    check_call(f, blas::trmm<T>{.a = a, .b = b, .m = 3, .n = 5, .alpha = T(2)}, function, CUBLAS_SIDE_LEFT, lower,
               CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 3, 5, points_to{2}, a, 3, b, 3, b, 3);
    check_call(f,
               blas::trmm<T>{.a = a,
                             .b = b,
                             .m = 3,
                             .n = 5,
                             .side = side::right,
                             .uplo = uplo::upper,
                             .trans = transpose::conjugate,
                             .diag = diag::unit,
                             .lda = 6,
                             .ldb = 4},
               function, CUBLAS_SIDE_RIGHT, upper, conjugate<T>, CUBLAS_DIAG_UNIT, 3, 5, points_to{1}, a, 6, b, 4, b,
               4);
}

TEST_CASE_TEMPLATE("trsm", T, COACCEL_DENSE)
{
    blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f);
    const auto function = "cublas" + letter<T>() + "trsm";
    check_call(f, blas::trsm<T>{.a = a, .b = b, .m = 3, .n = 5, .alpha = T(2), .trans = transpose::yes}, function,
               CUBLAS_SIDE_LEFT, lower, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, 3, 5, points_to{2}, a, 3, b, 3);
    check_call(f,
               blas::trsm<T>{.a = a,
                             .b = b,
                             .m = 3,
                             .n = 5,
                             .side = side::right,
                             .uplo = uplo::upper,
                             .trans = transpose::conjugate,
                             .diag = diag::unit,
                             .lda = 6,
                             .ldb = 4},
               function, CUBLAS_SIDE_RIGHT, upper, conjugate<T>, CUBLAS_DIAG_UNIT, 3, 5, points_to{1}, a, 6, b, 4);
    // Zeros are written without reading the operands.
    check_scaling(f, blas::trsm<T>{.a = a, .b = b, .m = 3, .n = 5, .alpha = T(0), .ldb = 4},
                  scaled_matrix<T>{.matrix = b, .rows = 3, .cols = 5, .ld = 4, .beta = 0});
}

TEST_CASE_TEMPLATE("geam", T, COACCEL_DENSE)
{
    blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f);
    const auto function = "cublas" + letter<T>() + "geam";
    check_call(f, blas::geam<T>{.a = a, .b = b, .c = c, .m = 3, .n = 5, .alpha = T(2), .beta = T(4)}, function,
               CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, points_to{2}, a, 3, points_to{4}, b, 3, c, 3);
    check_call(f,
               blas::geam<T>{.a = a,
                             .b = b,
                             .c = c,
                             .m = 3,
                             .n = 5,
                             .trans_a = transpose::yes,
                             .trans_b = transpose::conjugate,
                             .ldb = 7,
                             .ldc = 8},
               function, CUBLAS_OP_T, conjugate<T>, 3, 5, points_to{1}, a, 5, points_to{0}, b, 7, c, 8);
}

TEST_CASE_TEMPLATE("dgmm", T, COACCEL_DENSE)
{
    blas_fixture f;
    const auto a = elements<T>(f), x = elements<T>(f), c = elements<T>(f);
    const auto function = "cublas" + letter<T>() + "dgmm";
    check_call(f, blas::dgmm<T>{.a = a, .x = x, .c = c, .m = 3, .n = 5, .incx = -2}, function, CUBLAS_SIDE_LEFT, 3, 5,
               a, 3, x, -2, c, 3);
    check_call(
        f, blas::dgmm<T>{.a = a, .x = x, .c = c, .m = 3, .n = 1, .side = side::right, .lda = 6, .incx = 9, .ldc = 7},
        function, CUBLAS_SIDE_RIGHT, 3, 1, a, 3, x, 1, c, 3);
}

TEST_CASE("factors that are parameters of a plan are read from device memory")
{
    blas_fixture f;
    const auto a = elements<float>(f), c = elements<float>(f), factors = f.upload<float>({2, 3});
    const blas::syrk<float> op{.a = a, .c = c, .n = 3, .k = 5};
    const auto here = f.b->enter();
    bound_op o = f.bind(op);
    const auto* const at = static_cast<const float*>(f.buffers[factors.raw().slot].first);
    const scalar_address scalars[] = {{offsetof(blas::syrk<float>, alpha), at},
                                      {offsetof(blas::syrk<float>, beta), at + 1}};
    o.scalars = scalars;
    REQUIRE_FALSE(f.repeat_until_answered([&] { return test::try_start(*f.b, *f.lane, o); }));
    REQUIRE_FALSE(f.finish_stream());
    const auto calls = f.blas.calls("cublasSsyrk");
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].pointers == CUBLAS_POINTER_MODE_DEVICE);
    CHECK(calls[0].arguments[4].address == at);
    CHECK(calls[0].arguments[7].address == at + 1);
    CHECK(f.blas.last().pointers == CUBLAS_POINTER_MODE_HOST);
}

#undef COACCEL_DENSE
#undef COACCEL_COMPLEX

TEST_SUITE_END();

} // namespace test_cuda_blas_level3_calls
