#ifndef COACCEL_CUDA_LOAD_CUBLAS_SETUP_HPP
#define COACCEL_CUDA_LOAD_CUBLAS_SETUP_HPP

#include "cuda/load/cublas_api.hpp"
#include "cuda/load/table.hpp"

namespace coaccel::cuda {

/// 12.0: the first with sizes of 64 bits.
inline constexpr int oldest_cublas = 120000;

/// Fills the table from the library at `path`, once its version has been found good.
error_code fill(cublas_api& api, const symbol_lookup& find, const std::string& path);

} // namespace coaccel::cuda

#endif
