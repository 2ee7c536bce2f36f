#ifndef COACCEL_CUDA_PRIM_KERNEL_SOURCE_HPP
#define COACCEL_CUDA_PRIM_KERNEL_SOURCE_HPP

#include <coaccel/core/config.hpp>

#include <string>

namespace coaccel::cuda {

/// The source of all kernels of the library `prim`: templates, of which NVRTC compiles those that are used.
COACCEL_DECL std::string prim_kernel_source();

} // namespace coaccel::cuda

#endif
