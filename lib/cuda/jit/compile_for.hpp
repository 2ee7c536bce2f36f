#ifndef COACCEL_CUDA_JIT_COMPILE_FOR_HPP
#define COACCEL_CUDA_JIT_COMPILE_FOR_HPP

#include <coaccel/core/backend.hpp>
#include <coaccel/ops/jit/compile.hpp>
#include <coaccel/ops/jit/kernel.hpp>

#include <string>

namespace coaccel::cuda {

/// Compiles for this hardware with this machine's libraries. Takes long: do not call it on an executor. Needs no GPU.
COACCEL_DECL result<jit::kernel> compile_for(const hardware_info& hardware, const std::string& source,
                                             const jit::compile_options& options);

} // namespace coaccel::cuda

#endif
