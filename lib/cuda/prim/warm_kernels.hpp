#ifndef COACCEL_CUDA_PRIM_WARM_KERNELS_HPP
#define COACCEL_CUDA_PRIM_WARM_KERNELS_HPP

#include "cuda/jit/compiler.hpp"

#include <coaccel/core/system_info.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coaccel::cuda {

/// Called after each kernel, by one thread at a time: how many are compiled, and how many there are.
using warm_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// The architectures of this machine's GPUs, each once, as in compile_target.
///
/// Errors: errc::no_device; errc::library_missing with the problem of the driver.
result<std::vector<int>> gpu_architectures(const system_info& machine);

/// Compiles these kernels of `prim` for a target into the disk cache, on this many threads. Kernels that the cache has
/// are not compiled again. Takes minutes.
///
/// Errors: errc::start_failed if the cache cannot store a kernel; those of `compile`, with which it ends early.
error_code warm_kernels(const std::vector<std::string>& names, const compile_target& target, unsigned threads,
                        const warm_progress& progress);

/// As above, for each of these architectures. NVRTC may refuse some of them, which are logged. Returns how many kernels
/// the others have.
///
/// Errors: as above; errc::invalid_argument with their names if NVRTC refuses all of them.
result<std::uint64_t> warm_kernels(const std::vector<std::string>& names, const std::vector<int>& architectures,
                                   compile_target target, unsigned threads, const warm_progress& progress);

/// All kernels of `prim`, for all GPUs of this machine. Returns how many.
COACCEL_DECL result<std::uint64_t> warm_kernels(const warm_progress& progress);

} // namespace coaccel::cuda

#endif
