#ifndef COACCEL_CUDA_BLAS_CUBLAS_ERROR_HPP
#define COACCEL_CUDA_BLAS_CUBLAS_ERROR_HPP

#include <coaccel/core/error.hpp>

#include <cublas_v2.h>

namespace coaccel::cuda {

const boost::system::error_category& cublas_category() noexcept;

/// Out of memory becomes errc::out_of_memory, as on every backend.
error_code make_error(cublasStatus_t s) noexcept;

} // namespace coaccel::cuda

#endif
