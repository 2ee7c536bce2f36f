#ifndef COACCEL_CUDA_BLAS_CUBLASLT_SETUP_HPP
#define COACCEL_CUDA_BLAS_CUBLASLT_SETUP_HPP

#include "cuda/blas/cublaslt_api.hpp"
#include "cuda/loader/table.hpp"

namespace coaccel::cuda {

/// That of cuBLAS, with which it is installed. 12.0 has fp8.
inline constexpr int oldest_cublaslt = 120000;

/// Checks the version of the library at `api.path`, then fills the table from it.
error_code fill(cublaslt_api& api, const symbol_lookup& find);

} // namespace coaccel::cuda

#endif
