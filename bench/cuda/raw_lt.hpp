#ifndef COACCEL_BENCH_CUDA_RAW_LT_HPP
#define COACCEL_BENCH_CUDA_RAW_LT_HPP

#include "cuda/blas/cublaslt_api.hpp"
#include "raw.hpp"

namespace coaccel::bench {

/// transposed(A) * B for square matrices of one type, with cuBLASLt.
struct lt_product {
    std::int64_t n;
    cudaDataType_t factors;
    cudaDataType_t result;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

/// The operands of an lt_product. Without a bias or scales in the product, these are null.
struct lt_operands {
    const void* a;
    const void* b;
    void* c;
    const void* bias = nullptr;
    const void* scale = nullptr; ///< Of A and of B.
};

/// A product as plain code of cuBLASLt makes it: descriptors, and the first algorithm that the library proposes, are
/// made once.
class raw_lt {
public:
    raw_lt(const raw_gpu& raw, const lt_product& p, const lt_operands& on);
    raw_lt(const raw_lt&) = delete;
    raw_lt& operator=(const raw_lt&) = delete;
    ~raw_lt();

    void multiply() const;

private:
    void check(cublasStatus_t s, const char* what) const;
    void describe(const lt_product& p);
    void choose();

    static constexpr std::size_t workspace_bytes = std::size_t(32) << 20;

    const raw_gpu& raw_;
    const lt_operands on_;
    const cuda::cublaslt_api* api_;
    cublasLtHandle_t handle_ = nullptr;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t factor_ = nullptr;
    cublasLtMatrixLayout_t result_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
    raw_memory workspace_;
};

} // namespace coaccel::bench

#endif
