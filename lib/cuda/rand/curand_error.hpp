#ifndef COACCEL_CUDA_RAND_CURAND_ERROR_HPP
#define COACCEL_CUDA_RAND_CURAND_ERROR_HPP

#include <coaccel/core/error.hpp>

#include <curand.h>

namespace coaccel::cuda {

const boost::system::error_category& curand_category() noexcept;

/// Out of memory becomes errc::out_of_memory, as on every backend.
error_code make_error(curandStatus_t s) noexcept;

} // namespace coaccel::cuda

#endif
