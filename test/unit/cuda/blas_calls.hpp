#ifndef COACCEL_TEST_UNIT_CUDA_BLAS_CALLS_HPP
#define COACCEL_TEST_UNIT_CUDA_BLAS_CALLS_HPP

#include "blas_fixture.hpp"

#include <coaccel/ops/blas.hpp>

#include <complex>
#include <string>
#include <type_traits>
#include <utility>

// The arguments with which an op calls cuBLAS.
namespace test {

/// The value that an argument points to.
struct points_to {
    std::complex<double> value;
};

/// The letter of an element type in the names of cuBLAS.
template <class T>
std::string letter()
{
    if constexpr (coaccel::blas::complex_element<T>)
        return sizeof(T) == 8 ? "C" : "Z";
    else
        return sizeof(T) == 4 ? "S" : "D";
}

/// The types of products with factors of one type.
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
    else if constexpr (std::is_same_v<T, coaccel::bfloat16>)
        return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    else
        return {CUDA_R_8I, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32I, CUBLAS_COMPUTE_32I_PEDANTIC};
}

template <class T>
void check_argument(const blas_fixture& f, const blas_recorder::argument& got, const coaccel::ref<T>& wanted)
{
    CHECK(got.address == static_cast<const T*>(f.buffers[wanted.raw().slot].first) + wanted.raw().offset);
}

inline void check_argument(const blas_fixture&, const blas_recorder::argument& got, const points_to& wanted)
{
    CHECK(got.first == wanted.value);
}

template <class Number>
    requires(std::is_integral_v<Number> || std::is_enum_v<Number>)
void check_argument(const blas_fixture&, const blas_recorder::argument& got, Number wanted)
{
    CHECK(got.address == nullptr);
    CHECK(got.number == static_cast<long long>(wanted));
}

/// Runs an op, and checks the last call of cuBLAS: the function, and its arguments after the handle. A ref stands for
/// its address.
template <class Op, class... Wanted>
void check_call(blas_fixture& f, const Op& op, const std::string& function, const Wanted&... wanted)
{
    CAPTURE(function);
    REQUIRE_FALSE(f.run(op));
    const auto call = f.blas.last_call();
    CHECK(call.function == function);
    CHECK(call.pointers == CUBLAS_POINTER_MODE_HOST);
    REQUIRE(call.arguments.size() == sizeof...(wanted));
    std::size_t i = 0;
    const auto check = [&](const auto& one) {
        CAPTURE(i);
        check_argument(f, call.arguments[i], one);
        ++i;
    };
    (check(wanted), ...);
}

/// What an op makes of a matrix when its alpha is zero.
template <class T>
struct scaled_matrix {
    coaccel::ref<T> matrix;
    int rows, cols, ld;
    double beta;
    int stride = 0;
    int batch = 1;
};

/// Checks that an op only scales its result: it calls a product over no elements, which reads no other operand.
template <class Op, class T>
void check_scaling(blas_fixture& f, const Op& op, const scaled_matrix<T>& to)
{
    const auto types = types_of<T>();
    check_call(f, op, "cublasGemmStridedBatchedEx", CUBLAS_OP_N, CUBLAS_OP_N, to.rows, to.cols, 0, points_to{0},
               to.matrix, types.element, to.rows, 0, to.matrix, types.element, 1, 0, points_to{to.beta}, to.matrix,
               types.element, to.ld, to.stride, to.batch, types.standard, CUBLAS_GEMM_DEFAULT);
}

} // namespace test

#endif
