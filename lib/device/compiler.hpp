#ifndef COACCEL_DEVICE_COMPILER_HPP
#define COACCEL_DEVICE_COMPILER_HPP

#include <coaccel/core/backend.hpp>
#include <coaccel/ops/jit.hpp>

#include <string>

namespace coaccel::detail {

/// Compiles a kernel for this hardware. Blocks for the whole compilation.
result<jit::kernel> compile(const std::string& source, const jit::compile_options& how, const hardware_info& hardware);

} // namespace coaccel::detail

#endif
