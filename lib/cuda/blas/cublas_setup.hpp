#ifndef COACCEL_CUDA_BLAS_CUBLAS_SETUP_HPP
#define COACCEL_CUDA_BLAS_CUBLAS_SETUP_HPP

#include "cuda/blas/cublas_api.hpp"
#include "cuda/loader/table.hpp"

namespace coaccel::cuda {

/// 12.0 is the first version with 64-bit sizes.
inline constexpr int oldest_cublas = 120000;

/// Checks the version of the library at `api.path`, then fills the table from it.
error_code fill(cublas_api& api, const symbol_lookup& find);

} // namespace coaccel::cuda

#endif
