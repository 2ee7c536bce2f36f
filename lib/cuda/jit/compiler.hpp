#ifndef COACCEL_CUDA_JIT_COMPILER_HPP
#define COACCEL_CUDA_JIT_COMPILER_HPP

#include "cuda/load/nvrtc_api.hpp"

#include <coaccel/ops/jit_compile.hpp>
#include <coaccel/ops/jit_kernel.hpp>

#include <string>

namespace coaccel::cuda {

/// What a kernel is compiled for.
struct compile_target {
    /// 90 for sm_90; 0: none in particular, which makes PTX for the oldest that NVRTC knows.
    int architecture = 0;
    /// As driver_api has it; 0 without a driver.
    int driver_version = 0;
    /// Null: that of this machine.
    const nvrtc_api* nvrtc = nullptr;
};

/// Compiles, or finds on disk what was compiled before. Takes long: not on an executor. Needs no GPU.
///
/// Without NVRTC, options with a host function make a kernel that has only that, unless it is for a GPU.
/// Errors: errc::compile_failed with the compiler's log; errc::invalid_argument for an empty source or name;
/// errc::argument_mismatch when kernel and host function differ; errc::library_missing, errc::library_too_old.
result<jit::kernel> compile(const std::string& source, const jit::compile_options& options,
                            const compile_target& target);

} // namespace coaccel::cuda

#endif
