#ifndef COACCEL_CUDA_BLAS_CUBLAS_API_HPP
#define COACCEL_CUDA_BLAS_CUBLAS_API_HPP

#include "cuda/loader/vendor_library.hpp"

#include <cublas_v2.h>
#include <string>

namespace coaccel::cuda {

/// The functions of one operation for the complex element types, and for all of BLAS.
#define COACCEL_CUBLAS_COMPLEX(X, operation) X(cublasC##operation##_64) X(cublasZ##operation##_64)
#define COACCEL_CUBLAS_DENSE(X, operation)                                                                             \
    X(cublasS##operation##_64) X(cublasD##operation##_64) COACCEL_CUBLAS_COMPLEX(X, operation)
/// Those of an operation without a form with 64-bit sizes.
#define COACCEL_CUBLAS_DENSE_INT(X, operation)                                                                         \
    X(cublasS##operation) X(cublasD##operation) X(cublasC##operation) X(cublasZ##operation)

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
    COACCEL_CUBLAS_DENSE(X, axpy)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, scal)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, copy)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, swap)                                                                                      \
    X(cublasSdot_64)                                                                                                   \
    X(cublasDdot_64)                                                                                                   \
    X(cublasSnrm2_64)                                                                                                  \
    X(cublasDnrm2_64)                                                                                                  \
    X(cublasSasum_64)                                                                                                  \
    X(cublasDasum_64)                                                                                                  \
    X(cublasIsamax_64)                                                                                                 \
    X(cublasIdamax_64)                                                                                                 \
    X(cublasIcamax_64)                                                                                                 \
    X(cublasIzamax_64)                                                                                                 \
    X(cublasIsamin_64)                                                                                                 \
    X(cublasIdamin_64)                                                                                                 \
    X(cublasIcamin_64)                                                                                                 \
    X(cublasIzamin_64)                                                                                                 \
    X(cublasScnrm2_64)                                                                                                 \
    X(cublasDznrm2_64)                                                                                                 \
    X(cublasScasum_64)                                                                                                 \
    X(cublasDzasum_64)                                                                                                 \
    COACCEL_CUBLAS_COMPLEX(X, dotu)                                                                                    \
    COACCEL_CUBLAS_COMPLEX(X, dotc)                                                                                    \
    COACCEL_CUBLAS_DENSE(X, rot)                                                                                       \
    X(cublasSrotg)                                                                                                     \
    X(cublasDrotg)                                                                                                     \
    X(cublasCrotg)                                                                                                     \
    X(cublasZrotg)                                                                                                     \
    COACCEL_CUBLAS_DENSE(X, gemv)                                                                                      \
    X(cublasSger_64)                                                                                                   \
    X(cublasDger_64)                                                                                                   \
    COACCEL_CUBLAS_COMPLEX(X, geru)                                                                                    \
    COACCEL_CUBLAS_COMPLEX(X, gerc)                                                                                    \
    COACCEL_CUBLAS_DENSE(X, symv)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, syr)                                                                                       \
    COACCEL_CUBLAS_DENSE(X, syr2)                                                                                      \
    COACCEL_CUBLAS_COMPLEX(X, hemv)                                                                                    \
    COACCEL_CUBLAS_COMPLEX(X, her)                                                                                     \
    COACCEL_CUBLAS_COMPLEX(X, her2)                                                                                    \
    COACCEL_CUBLAS_DENSE(X, trmv)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, trsv)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, gemvStridedBatched)                                                                        \
    X(cublasHSHgemvStridedBatched_64)                                                                                  \
    X(cublasTSTgemvStridedBatched_64)                                                                                  \
    X(cublasGemmEx_64)                                                                                                 \
    X(cublasGemmStridedBatchedEx_64)                                                                                   \
    X(cublasGemmBatchedEx_64)                                                                                          \
    COACCEL_CUBLAS_DENSE(X, symm)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, syrk)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, syr2k)                                                                                     \
    COACCEL_CUBLAS_DENSE(X, syrkx)                                                                                     \
    COACCEL_CUBLAS_COMPLEX(X, hemm)                                                                                    \
    COACCEL_CUBLAS_COMPLEX(X, herk)                                                                                    \
    COACCEL_CUBLAS_COMPLEX(X, her2k)                                                                                   \
    COACCEL_CUBLAS_DENSE(X, trmm)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, trsm)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, geam)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, dgmm)                                                                                      \
    COACCEL_CUBLAS_DENSE(X, trsmBatched)                                                                               \
    COACCEL_CUBLAS_DENSE_INT(X, getrfBatched)                                                                          \
    COACCEL_CUBLAS_DENSE_INT(X, getrsBatched)                                                                          \
    COACCEL_CUBLAS_DENSE_INT(X, getriBatched)                                                                          \
    COACCEL_CUBLAS_DENSE_INT(X, geqrfBatched)                                                                          \
    COACCEL_CUBLAS_DENSE_INT(X, gelsBatched)

/// Functions that an older cuBLAS lacks; their pointers are then null.
#if CUBLAS_VERSION >= 120500
#define COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(X) X(cublasGemmGroupedBatchedEx_64)
#else
#define COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(X)
#endif

/// The functions of cuBLAS. Its version is 10000 * major + 100 * minor + patch.
struct cublas_api : function_table {
    static constexpr vendor_library library = vendor_library::cublas;

    /// This machine's cuBLAS, opened on first use. After a failure the next call tries again. Never unloaded. May take
    /// long: do not call it on an executor.
    static result<const cublas_api*> load();

#define COACCEL_CUDA_MEMBER(function) decltype(&::function) function = nullptr;
    COACCEL_CUBLAS_FUNCTIONS(COACCEL_CUDA_MEMBER)
    COACCEL_CUBLAS_OPTIONAL_FUNCTIONS(COACCEL_CUDA_MEMBER)
#undef COACCEL_CUDA_MEMBER
};

} // namespace coaccel::cuda

#endif
