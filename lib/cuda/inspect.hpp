#ifndef COACCEL_CUDA_INSPECT_HPP
#define COACCEL_CUDA_INSPECT_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/device/system_info.hpp>

namespace coaccel::cuda {

struct driver_api;
struct cublas_api;
struct nvrtc_api;

/// Adds the GPUs and the libraries of this machine. Opens what is not open yet; makes no context.
COACCEL_DECL void inspect(system_info& into);

/// The same, with libraries that someone else has tried to open.
void inspect(system_info& into, const result<const driver_api*>& driver, const result<const cublas_api*>& cublas,
             const result<const nvrtc_api*>& nvrtc);

} // namespace coaccel::cuda

#endif
