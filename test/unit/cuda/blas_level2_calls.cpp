#include "blas_calls.hpp"

#include <limits>

namespace test_cuda_blas_level2_calls {

namespace {

using namespace coaccel;
using blas::diag;
using blas::transpose;
using blas::uplo;
using test::blas_fixture;
using test::check_call;
using test::check_scaling;
using test::letter;
using test::points_to;
using test::scaled_matrix;

constexpr auto lower = CUBLAS_FILL_MODE_LOWER, upper = CUBLAS_FILL_MODE_UPPER;
constexpr auto most = std::numeric_limits<std::int64_t>::max();

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(64, T(1)));
}

/// ger, geru and gerc.
template <class Op>
void check_rank_one_calls(const std::string& function)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto x = elements<T>(f), y = elements<T>(f), a = elements<T>(f);
    check_call(f, Op{.x = x, .y = y, .a = a, .m = 3, .n = 5, .alpha = T(2), .incx = -2, .incy = 3}, function, 3, 5,
               points_to{2}, x, -2, y, 3, a, 3);
    check_call(f, Op{.x = x, .y = y, .a = a, .m = 3, .n = 1, .lda = 9, .incy = most}, function, 3, 1, points_to{1}, x,
               1, y, 1, a, 3);
    REQUIRE_FALSE(f.run(Op{.x = x, .y = y, .a = a, .m = 3, .n = 5, .alpha = T(0)}));
    CHECK(f.blas.calls(function).size() == 2);
}

/// symv and hemv.
template <class Op>
void check_product_calls(const std::string& function)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto a = elements<T>(f), x = elements<T>(f), y = elements<T>(f);
    check_call(f, Op{.a = a, .x = x, .y = y, .n = 3, .alpha = T(2), .beta = T(4), .incx = -2, .incy = 5}, function,
               lower, 3, points_to{2}, a, 3, x, -2, points_to{4}, y, 5);
    check_call(f, Op{.a = a, .x = x, .y = y, .n = 1, .uplo = uplo::upper, .lda = 6, .incx = most, .incy = -most},
               function, upper, 1, points_to{1}, a, 1, x, 1, points_to{0}, y, 1);
    // Operands that are multiplied by zero are not read: the vector is scaled as a matrix of one row.
    check_scaling(f, Op{.a = a, .x = x, .y = y, .n = 3, .alpha = T(0), .beta = T(4), .incy = -5},
                  scaled_matrix<T>{.matrix = y, .rows = 1, .cols = 3, .ld = 5, .beta = 4});
    check_scaling(f, Op{.a = a, .x = x, .y = y, .n = 1, .alpha = T(0), .incy = most},
                  scaled_matrix<T>{.matrix = y, .rows = 1, .cols = 1, .ld = 1, .beta = 0});
}

template <class Op>
void check_update_calls(const std::string& function)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto x = elements<T>(f), y = elements<T>(f), a = elements<T>(f);
    if constexpr (requires(Op& o) { o.y; }) {
        check_call(f, Op{.x = x, .y = y, .a = a, .n = 3, .alpha = 2, .incx = -2, .incy = 5}, function, lower, 3,
                   points_to{2}, x, -2, y, 5, a, 3);
        check_call(f, Op{.x = x, .y = y, .a = a, .n = 3, .uplo = uplo::upper, .lda = 6}, function, upper, 3,
                   points_to{1}, x, 1, y, 1, a, 6);
        REQUIRE_FALSE(f.run(Op{.x = x, .y = y, .a = a, .n = 3, .alpha = 0}));
    } else {
        check_call(f, Op{.x = x, .a = a, .n = 3, .alpha = 2, .incx = -2}, function, lower, 3, points_to{2}, x, -2, a,
                   3);
        check_call(f, Op{.x = x, .a = a, .n = 3, .uplo = uplo::upper, .lda = 6}, function, upper, 3, points_to{1}, x, 1,
                   a, 6);
        REQUIRE_FALSE(f.run(Op{.x = x, .a = a, .n = 3, .alpha = 0}));
    }
    CHECK(f.blas.calls(function).size() == 2);
}

template <class Op>
void check_triangular_calls(const std::string& function)
{
    using T = typename Op::value_type;
    blas_fixture f;
    const auto a = elements<T>(f), x = elements<T>(f);
    check_call(f, Op{.a = a, .x = x, .n = 3, .trans = transpose::yes, .incx = -2}, function, lower, CUBLAS_OP_T,
               CUBLAS_DIAG_NON_UNIT, 3, a, 3, x, -2);
    check_call(
        f, Op{.a = a, .x = x, .n = 3, .uplo = uplo::upper, .trans = transpose::conjugate, .diag = diag::unit, .lda = 6},
        function, upper, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, CUBLAS_DIAG_UNIT, 3, a, 6, x, 1);
}

} // namespace

TEST_SUITE_BEGIN("calls of cuBLAS, level 2");

#define COACCEL_DENSE float, double, std::complex<float>, std::complex<double>
#define COACCEL_COMPLEX std::complex<float>, std::complex<double>

TEST_CASE_TEMPLATE("gemv", T, COACCEL_DENSE)
{
    blas_fixture f;
    const auto a = elements<T>(f), x = elements<T>(f), y = elements<T>(f);
    const auto function = "cublas" + letter<T>() + "gemv";
    check_call(
        f, blas::gemv<T>{.a = a, .x = x, .y = y, .m = 3, .n = 5, .alpha = T(2), .beta = T(4), .incx = 2, .incy = -3},
        function, CUBLAS_OP_N, 3, 5, points_to{2}, a, 3, x, 2, points_to{4}, y, -3);
    check_call(f, blas::gemv<T>{.a = a, .x = x, .y = y, .m = 3, .n = 5, .trans = transpose::conjugate, .lda = 6},
               function, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, 3, 5, points_to{1}, a, 6, x, 1,
               points_to{0}, y, 1);
    // It does not read operands that are multiplied by zero.
    check_call(f, blas::gemv<T>{.a = a, .x = x, .y = y, .m = 3, .n = 5, .alpha = T(0), .beta = T(4)}, function,
               CUBLAS_OP_N, 3, 5, points_to{0}, a, 3, x, 1, points_to{4}, y, 1);
}

TEST_CASE_TEMPLATE("ger", T, float, double)
{
    check_rank_one_calls<blas::ger<T>>("cublas" + letter<T>() + "ger");
}

TEST_CASE_TEMPLATE("geru and gerc", T, COACCEL_COMPLEX)
{
    check_rank_one_calls<blas::geru<T>>("cublas" + letter<T>() + "geru");
    check_rank_one_calls<blas::gerc<T>>("cublas" + letter<T>() + "gerc");
}

TEST_CASE_TEMPLATE("symv, syr and syr2", T, COACCEL_DENSE)
{
    check_product_calls<blas::symv<T>>("cublas" + letter<T>() + "symv");
    check_update_calls<blas::syr<T>>("cublas" + letter<T>() + "syr");
    check_update_calls<blas::syr2<T>>("cublas" + letter<T>() + "syr2");
}

TEST_CASE_TEMPLATE("hemv, her and her2", T, COACCEL_COMPLEX)
{
    check_product_calls<blas::hemv<T>>("cublas" + letter<T>() + "hemv");
    check_update_calls<blas::her<T>>("cublas" + letter<T>() + "her");
    check_update_calls<blas::her2<T>>("cublas" + letter<T>() + "her2");
}

TEST_CASE_TEMPLATE("trmv and trsv", T, COACCEL_DENSE)
{
    check_triangular_calls<blas::trmv<T>>("cublas" + letter<T>() + "trmv");
    check_triangular_calls<blas::trsv<T>>("cublas" + letter<T>() + "trsv");
}

TEST_CASE("a vector is scaled by a parameter of a plan, which is in device memory, if alpha is zero")
{
    blas_fixture f;
    const auto a = elements<float>(f), x = elements<float>(f), y = elements<float>(f);
    const auto factors = f.upload<float>({0, 3});
    const blas::symv<float> op{.a = a, .x = x, .y = y, .n = 3, .alpha = 0, .beta = 1};
    const auto here = f.b->enter();
    bound_op o = f.bind(op);
    const auto* const at = static_cast<const float*>(f.buffers[factors.raw().slot].first);
    const scalar_address scalars[] = {{offsetof(blas::symv<float>, alpha), at},
                                      {offsetof(blas::symv<float>, beta), at + 1}};
    o.scalars = scalars;
    REQUIRE_FALSE(f.repeat_until_answered([&] { return test::try_start(*f.b, *f.lane, o); }));
    REQUIRE_FALSE(f.finish_stream());
    const auto call = f.blas.calls("cublasGemmStridedBatchedEx");
    REQUIRE(call.size() == 1);
    CHECK(call[0].pointers == CUBLAS_POINTER_MODE_DEVICE);
    CHECK(call[0].arguments[4].number == 0);
    CHECK(call[0].arguments[5].address == at);
    CHECK(call[0].arguments[14].address == at + 1);
}

#undef COACCEL_DENSE
#undef COACCEL_COMPLEX

TEST_SUITE_END();

} // namespace test_cuda_blas_level2_calls
