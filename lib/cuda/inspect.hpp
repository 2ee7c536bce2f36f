#ifndef COACCEL_CUDA_INSPECT_HPP
#define COACCEL_CUDA_INSPECT_HPP

#include "cuda/loader/vendor_library.hpp"

#include <coaccel/core/system_info.hpp>

#include <functional>

namespace coaccel::cuda {

/// Adds this machine's GPUs and libraries. Opens libraries that are not open yet; creates no context.
COACCEL_DECL void inspect(system_info& into);

/// As above, with libraries that `load` opens.
void inspect(system_info& into,
             const std::function<result<const function_table*>(const vendor_library_info& library)>& load);

} // namespace coaccel::cuda

#endif
