#ifndef COACCEL_CUDA_BLAS_LT_PLAN_HPP
#define COACCEL_CUDA_BLAS_LT_PLAN_HPP

#include "cuda/blas/cublaslt_api.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coaccel::cuda {

/// An operand as it is in memory.
struct lt_matrix {
    cudaDataType_t type;
    std::uint64_t rows, cols;
    std::int64_t ld;
    /// The distance between the matrices of a batch.
    std::int64_t stride;
    /// The address is a multiple of it, at most 256 bytes. cuBLASLt chooses a kernel that permits it.
    std::uint32_t alignment;

    friend bool operator==(const lt_matrix&, const lt_matrix&) = default;
};

/// Everything by which cuBLASLt may choose an algorithm.
struct lt_problem {
    lt_matrix a, b, c;
    cublasOperation_t trans_a, trans_b;
    std::int32_t batch;
    cublasComputeType_t compute;
    cudaDataType_t scale_type;
    cublasLtPointerMode_t pointers;
    cublasLtEpilogue_t epilogue;
    /// If the epilogue has a bias.
    cudaDataType_t bias_type;
    std::uint32_t bias_alignment;
    /// Whether A and B have scales.
    bool scaled;

    bool has_bias() const noexcept { return (static_cast<unsigned>(epilogue) & CUBLASLT_EPILOGUE_BIAS) != 0; }

    friend bool operator==(const lt_problem&, const lt_problem&) = default;
};

/// The operands of one product.
struct lt_arguments {
    const void* a;
    const void* b;
    void* c;
    /// If the problem has a bias or scales.
    const void* bias;
    const void* scale_a;
    const void* scale_b;
    /// The factors in device memory; null: their values follow.
    const void* alpha_address;
    const void* beta_address;
    /// A float or an i32.
    std::uint32_t alpha_bits;
    std::uint32_t beta_bits;

    const void* alpha() const noexcept { return alpha_address ? alpha_address : &alpha_bits; }
    const void* beta() const noexcept { return beta_address ? beta_address : &beta_bits; }
};

/// The descriptors and the algorithm for one problem. Used by one thread at a time, because each launch writes the
/// addresses of bias and scales to the descriptor.
class lt_plan {
public:
    lt_plan() = default;
    lt_plan(const lt_plan&) = delete;
    lt_plan& operator=(const lt_plan&) = delete;

    /// Makes the descriptors and chooses the algorithm, which may take long. Errors: CUBLAS_STATUS_NOT_SUPPORTED if
    /// there is none.
    cublasStatus_t make(const cublaslt_api& api, cublasLtHandle_t handle, const lt_problem& p, const lt_arguments& with,
                        std::size_t workspace_bytes);

    cublasStatus_t launch(const cublaslt_api& api, cublasLtHandle_t handle, const lt_arguments& with, void* workspace,
                          std::size_t workspace_bytes, CUstream_st* stream);

    void destroy(const cublaslt_api& api) noexcept;

    const lt_problem& problem() const noexcept { return problem_; }

    /// The ops that use it: such a plan stays.
    std::atomic<int> users{0};

private:
    cublasStatus_t describe(const cublaslt_api& api);
    cublasStatus_t choose(const cublaslt_api& api, cublasLtHandle_t handle, cublasLtMatmulPreference_t preference,
                          std::size_t workspace_bytes);
    cublasStatus_t set_addresses(const cublaslt_api& api, const lt_arguments& with);

    lt_problem problem_{};
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t a_ = nullptr;
    cublasLtMatrixLayout_t b_ = nullptr;
    cublasLtMatrixLayout_t c_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
};

} // namespace coaccel::cuda

#endif
