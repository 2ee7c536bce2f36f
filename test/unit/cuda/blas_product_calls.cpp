#include "blas_calls.hpp"

#include <limits>

namespace test_cuda_blas_product_calls {

namespace {

using namespace coaccel;
using blas::math;
using blas::transpose;
using test::blas_fixture;
using test::check_call;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

template <class T>
ref<T> elements(blas_fixture& f)
{
    return f.upload(std::vector<T>(64, T(1)));
}

/// The last call of GemmEx or GemmStridedBatchedEx; the recorder's own gemm is replaced by the recording one.
struct recorded_gemm {
    recorded_gemm() { f.blas.record_gemm(); }
    blas_fixture f;
};

/// A number that the type of the argument does not tell.
struct any {};

void check_argument(const blas_fixture&, const test::blas_recorder::argument&, any) {}

struct gemm_types {
    cudaDataType_t element;
    cublasComputeType_t standard, tf32, pedantic;
};

template <class T>
gemm_types types_of()
{
    if constexpr (std::is_same_v<T, float>)
        return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_PEDANTIC};
    else if constexpr (std::is_same_v<T, double>)
        return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC};
    else if constexpr (std::is_same_v<T, std::complex<float>>)
        return {CUDA_C_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_PEDANTIC};
    else if constexpr (std::is_same_v<T, std::complex<double>>)
        return {CUDA_C_64F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC};
    else if constexpr (std::is_same_v<T, coaccel::half>)
        return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    else if constexpr (std::is_same_v<T, bfloat16>)
        return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    else
        return {CUDA_R_8I, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32I_PEDANTIC};
}

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
                   "cublasGemmEx", turned, CUBLAS_OP_T, 3, 5, 4, any{}, a, types.element, 4, b, types.element, 6, any{},
                   c, types.element, 7, compute, CUBLAS_GEMM_DEFAULT);
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
    check_call(f, blas::gemm_ex<T>{.a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .ldc = 7}, "cublasGemmEx",
               CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 8, any{}, a, types.element, 4, b, types.element, 8, any{}, c, wide, 7,
               types.standard, CUBLAS_GEMM_DEFAULT);
    check_call(f, blas::gemm_ex<T>{.a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .math = math::pedantic},
               "cublasGemmEx", CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 8, any{}, a, types.element, 4, b, types.element, 8,
               any{}, c, wide, 4, types.pedantic, CUBLAS_GEMM_DEFAULT);
    // 16-bit factors that are multiplied by zero are replaced by zeros.
    REQUIRE_FALSE(f.run(blas::gemm_ex<T>{.a = a, .b = b, .c = c, .m = 4, .n = 5, .k = 8, .alpha = 0}));
    const auto call = f.blas.last_call();
    CHECK(call.arguments[4].number == (sizeof(T) == 2 ? 1 : 8));
    CHECK((call.arguments[6].address == f.buffers[a.raw().slot].first) == (sizeof(T) == 1));
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
               any{}, a, types.element, 3, 13, b, types.element, 5, 0, any{}, c, types.element, 3, 16, 2,
               types.pedantic, CUBLAS_GEMM_DEFAULT);
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
               function, blas::complex_element<T> ? CUBLAS_OP_C : CUBLAS_OP_T, 3, 5, test::points_to{2}, a, 3, 16, x,
               -2, 9, test::points_to{4}, y, 3, 20, 2);
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
               function, CUBLAS_OP_N, 3, 5, test::points_to{1}, a, 4, 0, x, 1, 0, test::points_to{0}, y, 1, 0, 1);
    // 16-bit operands that are multiplied by zero are replaced by zeros.
    REQUIRE_FALSE(f.run(op{.a = a, .x = x, .y = y, .m = 3, .n = 5, .batch = 2, .stride_y = 5, .alpha = 0}));
    const auto call = f.blas.last_call();
    CHECK(call.arguments[2].number == (sizeof(T) == 2 ? 1 : 5));
    CHECK((call.arguments[4].address == f.buffers[a.raw().slot].first) == (sizeof(T) != 2));
    CHECK(call.arguments[13].number == 5);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_product_calls
