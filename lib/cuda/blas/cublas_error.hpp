#ifndef COACCEL_CUDA_BLAS_CUBLAS_ERROR_HPP
#define COACCEL_CUDA_BLAS_CUBLAS_ERROR_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/error.hpp>

#include <cublas_v2.h>

namespace coaccel::cuda {

class backend;

const boost::system::error_category& cublas_category() noexcept;

/// Out of memory becomes errc::out_of_memory, as on every backend.
error_code make_error(cublasStatus_t s) noexcept;

/// Asks the driver for a sticky error after a call on this stream has failed, because on a dead context the library may
/// return any status. None if the context is healthy, or known to be dead.
error_code find_fault(backend& b, CUstream s) noexcept;

} // namespace coaccel::cuda

#endif
