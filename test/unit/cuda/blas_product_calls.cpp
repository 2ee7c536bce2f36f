#include "blas_calls.hpp"

#include <limits>

namespace test_cuda_blas_product_calls {

namespace {

using namespace coaccel;
using blas::math;
using blas::transpose;
using test::blas_fixture;
using test::check_call;
using test::points_to;
using test::types_of;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(64, T(1)));
}

/// The recorder records all arguments of GemmEx.
struct recorded_gemm {
    recorded_gemm() { f.blas.record_gemm(); }
    blas_fixture f;
};

} // namespace

TEST_SUITE_BEGIN("calls of cuBLAS, products");

TEST_CASE_TEMPLATE("gemm", T, float, double, coaccel::half, bfloat16, std::complex<float>, std::complex<double>)
{
    recorded_gemm r;
    auto& f = r.f;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f);
    const auto types = types_of<T>();
    const auto turned = blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T;
    for (const auto& [how, compute] : {std::pair(math::standard, types.standard), std::pair(math::tf32, types.tf32),
                                       std::pair(math::pedantic, types.pedantic)})
        check_call(f,
                   blas::gemm<T>{.a = a,
                                 .b = b,
                                 .c = c,
                                 .m = 3,
                                 .n = 5,
                                 .k = 4,
                                 .trans_a = transpose::conjugate,
                                 .trans_b = transpose::yes,
                                 .ldb = 6,
                                 .ldc = 7,
                                 .math = how},
                   "cublasGemmEx", turned, CUBLAS_OP_T, 3, 5, 4, points_to{1}, a, types.element, 4, b, types.element, 6,
                   points_to{0}, c, types.element, 7, compute, CUBLAS_GEMM_DEFAULT);
    // Factors that are multiplied by zero are not read: the sum of the product has no elements.
    check_call(f, blas::gemm<T>{.a = a, .b = b, .c = c, .m = 3, .n = 5, .k = 4, .alpha = 0, .beta = 2}, "cublasGemmEx",
               CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, 0, points_to{0}, a, types.element, 3, b, types.element, 4, points_to{2},
               c, types.element, 3, types.standard, CUBLAS_GEMM_DEFAULT);
}

TEST_CASE_TEMPLATE("gemm_ex", T, coaccel::half, bfloat16, std::int8_t)
{
    recorded_gemm r;
    auto& f = r.f;
    using result = typename blas::gemm_ex<T>::result_type;
    const auto a = elements<T>(f), b = elements<T>(f);
    const auto c = elements<result>(f);
    const auto types = types_of<T>();
    const auto wide = std::is_same_v<result, float> ? CUDA_R_32F : CUDA_R_32I;
    check_call(f, blas::gemm_ex<T>{.a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .alpha = 3, .ldc = 7},
               "cublasGemmEx", CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 8, points_to{3}, a, types.element, 4, b, types.element,
               8, points_to{0}, c, wide, 7, types.standard, CUBLAS_GEMM_DEFAULT);
    check_call(f, blas::gemm_ex<T>{.a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .math = math::pedantic},
               "cublasGemmEx", CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 8, points_to{1}, a, types.element, 4, b, types.element,
               8, points_to{0}, c, wide, 4, types.pedantic, CUBLAS_GEMM_DEFAULT);
    // Factors that are multiplied by zero are not read.
    check_call(f, blas::gemm_ex<T>{.a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .alpha = 0, .beta = 2},
               "cublasGemmEx", CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 0, points_to{0}, a, types.element, 4, b, types.element,
               8, points_to{2}, c, wide, 4, types.standard, CUBLAS_GEMM_DEFAULT);
}

TEST_CASE_TEMPLATE("gemm_strided_batched", T, float, double, coaccel::half, bfloat16, std::complex<float>,
                   std::complex<double>)
{
    blas_fixture f;
    const auto a = elements<T>(f), b = elements<T>(f), c = elements<T>(f);
    const auto types = types_of<T>();
    check_call(f,
               blas::gemm_strided_batched<T>{.a = a,
                                             .b = b,
                                             .c = c,
                                             .m = 3,
                                             .n = 5,
                                             .k = 4,
                                             .batch = 2,
                                             .stride_a = 13,
                                             .stride_c = 16,
                                             .trans_b = transpose::conjugate,
                                             .math = math::pedantic},
               "cublasGemmStridedBatchedEx", CUBLAS_OP_N, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, 3, 5, 4,
               points_to{1}, a, types.element, 3, 13, b, types.element, 5, 0, points_to{0}, c, types.element, 3, 16, 2,
               types.pedantic, CUBLAS_GEMM_DEFAULT);
    // Factors that are multiplied by zero are not read.
    check_call(f,
               blas::gemm_strided_batched<T>{
                   .a = a, .b = b, .c = c, .m = 3, .n = 5, .k = 4, .batch = 2, .stride_c = 15, .alpha = 0, .beta = 2},
               "cublasGemmStridedBatchedEx", CUBLAS_OP_N, CUBLAS_OP_N, 3, 5, 0, points_to{0}, a, types.element, 3, 0, b,
               types.element, 4, 0, points_to{2}, c, types.element, 3, 15, 2, types.standard, CUBLAS_GEMM_DEFAULT);
}

TEST_CASE_TEMPLATE("gemv_strided_batched", T, float, double, coaccel::half, bfloat16, std::complex<float>,
                   std::complex<double>)
{
    blas_fixture f;
    const auto a = elements<T>(f), x = elements<T>(f), y = elements<T>(f);
    const std::string prefix = std::is_same_v<T, coaccel::half> ? "HSH"
                               : std::is_same_v<T, bfloat16>    ? "TST"
                                                                : test::letter<T>();
    const auto function = "cublas" + prefix + "gemvStridedBatched";
    using op = blas::gemv_strided_batched<T>;
    check_call(f,
               op{.a = a,
                  .x = x,
                  .y = y,
                  .m = 3,
                  .n = 5,
                  .batch = 2,
                  .stride_a = 16,
                  .stride_x = 9,
                  .stride_y = 20,
                  .alpha = 2,
                  .beta = 4,
                  .trans = transpose::conjugate,
                  .incx = -2,
                  .incy = 3},
               function, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, 3, 5, points_to{2}, a, 3, 16, x, -2, 9,
               points_to{4}, y, 3, 20, 2);
    // Strides of a single product have no meaning.
    check_call(f,
               op{.a = a,
                  .x = x,
                  .y = y,
                  .m = 3,
                  .n = 5,
                  .batch = 1,
                  .stride_a = huge,
                  .stride_x = huge,
                  .stride_y = huge,
                  .lda = 4},
               function, CUBLAS_OP_N, 3, 5, points_to{1}, a, 4, 0, x, 1, 0, points_to{0}, y, 1, 0, 1);
    // 16-bit operands that are multiplied by zero are not read: each vector is scaled as a matrix of one row.
    const op scaled{
        .a = a, .x = x, .y = y, .m = 3, .n = 5, .batch = 2, .stride_y = 9, .alpha = 0, .beta = 2, .incy = -2};
    if constexpr (sizeof(T) == 2)
        test::check_scaling(
            f, scaled,
            test::scaled_matrix<T>{.matrix = y, .rows = 1, .cols = 3, .ld = 2, .beta = 2, .stride = 9, .batch = 2});
    else
        check_call(f, scaled, function, CUBLAS_OP_N, 3, 5, points_to{0}, a, 3, 0, x, 1, 0, points_to{2}, y, -2, 9, 2);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_product_calls
