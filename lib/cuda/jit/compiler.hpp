#ifndef COACCEL_CUDA_JIT_COMPILER_HPP
#define COACCEL_CUDA_JIT_COMPILER_HPP

#include "cuda/jit/nvrtc_api.hpp"

#include <coaccel/ops/jit/compile.hpp>
#include <coaccel/ops/jit/kernel.hpp>

#include <string>

namespace coaccel::cuda {

/// The target of a compilation.
struct compile_target {
    /// 90 for sm_90. 0: no particular one; the result is PTX for the oldest architecture that NVRTC supports.
    int architecture = 0;
    /// As in driver_api; 0 without a driver.
    int driver_version = 0;
    /// Null: load this machine's library.
    const nvrtc_api* nvrtc = nullptr;
};

/// Compiles, or finds the code in the disk cache. Takes long: do not call it on an executor. Needs no GPU.
///
/// Without NVRTC, options with a host function produce a host-only kernel, unless the target is a GPU.
/// Errors: errc::compile_failed with the compiler's log; errc::invalid_argument for an empty source or name;
/// errc::argument_mismatch when kernel and host function differ; errc::library_missing, errc::library_too_old.
result<jit::kernel> compile(const std::string& source, const jit::compile_options& options,
                            const compile_target& target);

/// Whether the disk cache can identify what `compile` makes of these: it cannot if the text of headers is unknown.
/// Precondition: the target has the library.
bool can_cache(const std::string& source, const jit::compile_options& options, const compile_target& target);

} // namespace coaccel::cuda

#endif
