#ifndef COACCEL_CUDA_DRIVER_VENDOR_ERRORS_HPP
#define COACCEL_CUDA_DRIVER_VENDOR_ERRORS_HPP

#include <coaccel/core/error.hpp>

#include <string_view>

namespace coaccel::cuda {

/// Finds the error category of a vendor library by name, such as "coaccel.cublas"; null if there is none.
COACCEL_DECL const boost::system::error_category* find_category(std::string_view name) noexcept;

} // namespace coaccel::cuda

#endif
