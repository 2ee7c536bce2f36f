#ifndef COACCEL_CUDA_INSPECT_HPP
#define COACCEL_CUDA_INSPECT_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/core/system_info.hpp>

namespace coaccel::cuda {

struct driver_api;
struct cublas_api;
struct nvrtc_api;

/// Adds this machine's GPUs and libraries. Opens libraries that are not open yet; creates no context.
COACCEL_DECL void inspect(system_info& into);

/// As above, with libraries that the caller has tried to open.
void inspect(system_info& into, const result<const driver_api*>& driver, const result<const cublas_api*>& cublas,
             const result<const nvrtc_api*>& nvrtc);

} // namespace coaccel::cuda

#endif
