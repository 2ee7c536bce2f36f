#ifndef COACCEL_CUDA_BLAS_CUBLASLT_API_HPP
#define COACCEL_CUDA_BLAS_CUBLASLT_API_HPP

#include "cuda/loader/vendor_library.hpp"

#include <cublasLt.h>

namespace coaccel::cuda {

#define COACCEL_CUBLASLT_FUNCTIONS(X)                                                                                  \
    X(cublasLtGetProperty)                                                                                             \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtMatmul)                                                                                                  \
    X(cublasLtMatmulAlgoCheck)                                                                                         \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)                                                                                     \
    X(cublasLtMatrixLayoutSetAttribute)

/// The version from which on factors of fp8 may have a scale for each row and column.
inline constexpr int oldest_cublaslt_with_row_scales = 120900;

/// The functions of cuBLASLt. Its version is 10000 * major + 100 * minor + patch. Its errors are those of cuBLAS.
struct cublaslt_api : function_table {
    static constexpr vendor_library library = vendor_library::cublaslt;

    /// This machine's cuBLASLt, opened on first use. After a failure the next call tries again. Never unloaded. May
    /// take long: do not call it on an executor.
    static result<const cublaslt_api*> load();

#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_CUBLASLT_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER
};

} // namespace coaccel::cuda

#endif
