#ifndef COACCEL_CUDA_BLAS_CUBLAS_API_HPP
#define COACCEL_CUDA_BLAS_CUBLAS_API_HPP

#include "cuda/loader/vendor_library.hpp"

#include <cublas_v2.h>
#include <string>

namespace coaccel::cuda {

#define COACCEL_CUBLAS_FUNCTIONS(X)                                                                                    \
    X(cublasCreate)                                                                                                    \
    X(cublasDestroy)                                                                                                   \
    X(cublasGetProperty)                                                                                               \
    X(cublasGetStatusString)                                                                                           \
    X(cublasSetStream)                                                                                                 \
    X(cublasSetWorkspace)                                                                                              \
    X(cublasSetPointerMode)                                                                                            \
    X(cublasSetMathMode)                                                                                               \
    X(cublasSetAtomicsMode)                                                                                            \
    X(cublasSaxpy_64)                                                                                                  \
    X(cublasDaxpy_64)                                                                                                  \
    X(cublasSscal_64)                                                                                                  \
    X(cublasDscal_64)                                                                                                  \
    X(cublasScopy_64)                                                                                                  \
    X(cublasDcopy_64)                                                                                                  \
    X(cublasSswap_64)                                                                                                  \
    X(cublasDswap_64)                                                                                                  \
    X(cublasSdot_64)                                                                                                   \
    X(cublasDdot_64)                                                                                                   \
    X(cublasSnrm2_64)                                                                                                  \
    X(cublasDnrm2_64)                                                                                                  \
    X(cublasSasum_64)                                                                                                  \
    X(cublasDasum_64)                                                                                                  \
    X(cublasIsamax_64)                                                                                                 \
    X(cublasIdamax_64)                                                                                                 \
    X(cublasSgemv_64)                                                                                                  \
    X(cublasDgemv_64)                                                                                                  \
    X(cublasSger_64)                                                                                                   \
    X(cublasDger_64)                                                                                                   \
    X(cublasGemmEx_64)                                                                                                 \
    X(cublasGemmStridedBatchedEx_64)

/// The functions of cuBLAS. Its version is 10000 * major + 100 * minor + patch.
struct cublas_api : function_table {
    static constexpr vendor_library library = vendor_library::cublas;

    /// This machine's cuBLAS, opened on first use. After a failure the next call tries again. Never unloaded. May take
    /// long: do not call it on an executor.
    static result<const cublas_api*> load();

#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_CUBLAS_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER
};

} // namespace coaccel::cuda

#endif
