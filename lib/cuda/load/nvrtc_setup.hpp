#ifndef COACCEL_CUDA_LOAD_NVRTC_SETUP_HPP
#define COACCEL_CUDA_LOAD_NVRTC_SETUP_HPP

#include "cuda/load/nvrtc_api.hpp"
#include "cuda/load/table.hpp"

namespace coaccel::cuda {

inline constexpr int oldest_nvrtc = 12000;

/// Fills the table from the library at `path`, once its version has been found good.
error_code fill(nvrtc_api& api, const symbol_lookup& find, const std::string& path);

} // namespace coaccel::cuda

#endif
