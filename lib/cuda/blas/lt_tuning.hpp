#ifndef COACCEL_CUDA_BLAS_LT_TUNING_HPP
#define COACCEL_CUDA_BLAS_LT_TUNING_HPP

#include "cuda/blas/lt_plan.hpp"
#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/result.hpp>
#include <coaccel/core/tune.hpp>

namespace coaccel::cuda {

class backend;

/// What the measurements of a plan need.
struct lt_measured {
    backend& b;
    const cublaslt_api& api;
    cublasLtHandle_t handle;
    CUstream stream;
    lt_workspace workspace;
};

/// Measures the algorithms of a plan, which then uses the fastest one. The one that cuBLASLt proposes is kept unless
/// another one is clearly faster. Blocks until the stream has executed them. `with.d`: memory that may be overwritten.
/// `status` is that of the last call of cuBLASLt; if all algorithms are refused, that of the first one.
result<tuning> measure_algorithms(const lt_measured& m, lt_plan& plan, const lt_arguments& with,
                                  cublasLtMatmulAlgo_t& best, cublasStatus_t& status);

} // namespace coaccel::cuda

#endif
