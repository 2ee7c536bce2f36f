#ifndef COACCEL_CUDA_PLAN_COPY_KERNEL_HPP
#define COACCEL_CUDA_PLAN_COPY_KERNEL_HPP

#include "cuda/plan/copy_parts.hpp"

#include <coaccel/core/result.hpp>

#include <mutex>

namespace coaccel::cuda {

class backend;

/// The kernel that copies the arguments of runs, in one context.
///
/// The driver launches a graph of kernels in a third of the time that it needs for one with copies, and the device goes
/// from kernel to kernel without waiting for a copy engine: on an H200, a request of a copy, a gemv and a copy takes
/// 14 us instead of 20.
class copy_kernel {
public:
    /// Loads it, once. Null: this GPU or driver cannot, and copies are commands. Blocks; may be called on any thread.
    /// Errors: the context is dead.
    result<CUfunction> load(backend& b);

    /// Preconditions: as for library_resources::destroy.
    void unload(backend& b) noexcept;

private:
    std::mutex mutex_;
    bool tried_ = false;
    CUmodule module_ = nullptr;
    CUfunction function_ = nullptr;
};

/// Puts a launch on a stream. The addresses are multiples of 16.
error_code launch_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUstream s) noexcept;

/// Changes the launch in an executable graph.
error_code change_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUgraphExec graph,
                         CUgraphNode node) noexcept;

} // namespace coaccel::cuda

#endif
