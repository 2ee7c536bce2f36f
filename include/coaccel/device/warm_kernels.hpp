#ifndef COACCEL_DEVICE_WARM_KERNELS_HPP
#define COACCEL_DEVICE_WARM_KERNELS_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/result.hpp>

#include <cstdint>
#include <functional>

namespace coaccel {

/// Compiles all kernels of `prim` for all GPUs of this machine, so that the first use of each op finds its code in the
/// disk cache (`COACCEL_CACHE_DIR`, or `coaccel/jit` in the user's cache folder). Kernels that are there are not
/// compiled again. Returns the number of kernels. GPUs that NVRTC does not support are logged and left out.
///
/// `progress`, unless it is empty, is called after each kernel, by one thread at a time, with how many are done and how
/// many there are.
///
/// Blocks for minutes, and uses up to 32 CPUs: do not call it on a thread of an executor.
/// Errors: errc::backend_unavailable in a build without CUDA; errc::no_device; errc::library_missing,
/// errc::library_too_old for the driver and NVRTC; errc::invalid_argument if NVRTC supports none of the GPUs;
/// errc::start_failed if the cache cannot store a kernel.
/// Exceptions: std::bad_alloc. `progress` must not throw.
COACCEL_DECL result<std::uint64_t>
warm_kernels(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

} // namespace coaccel

#endif
