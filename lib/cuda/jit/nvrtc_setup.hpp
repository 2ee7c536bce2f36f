#ifndef COACCEL_CUDA_JIT_NVRTC_SETUP_HPP
#define COACCEL_CUDA_JIT_NVRTC_SETUP_HPP

#include "cuda/jit/nvrtc_api.hpp"
#include "cuda/loader/table.hpp"

namespace coaccel::cuda {

inline constexpr int oldest_nvrtc = 12000;

/// Checks the version of the library at `api.path`, then fills the table from it.
error_code fill(nvrtc_api& api, const symbol_lookup& find);

} // namespace coaccel::cuda

#endif
