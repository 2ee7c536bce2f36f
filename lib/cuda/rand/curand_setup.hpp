#ifndef COACCEL_CUDA_RAND_CURAND_SETUP_HPP
#define COACCEL_CUDA_RAND_CURAND_SETUP_HPP

#include "cuda/loader/table.hpp"
#include "cuda/rand/curand_api.hpp"

namespace coaccel::cuda {

/// 10.3 is the version of CUDA 12.0.
inline constexpr int oldest_curand = 100300;

/// Checks the version of the library at `api.path`, then fills the table from it.
error_code fill(curand_api& api, const symbol_lookup& find);

} // namespace coaccel::cuda

#endif
