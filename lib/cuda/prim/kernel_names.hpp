#ifndef COACCEL_CUDA_PRIM_KERNEL_NAMES_HPP
#define COACCEL_CUDA_PRIM_KERNEL_NAMES_HPP

#include <coaccel/core/config.hpp>

#include <string>
#include <vector>

namespace coaccel::cuda {

/// The name expressions of all kernels of `prim`.
COACCEL_DECL std::vector<std::string> prim_kernel_names();

} // namespace coaccel::cuda

#endif
