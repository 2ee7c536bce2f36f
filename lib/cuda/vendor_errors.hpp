#ifndef COACCEL_CUDA_VENDOR_ERRORS_HPP
#define COACCEL_CUDA_VENDOR_ERRORS_HPP

#include <coaccel/core/error.hpp>

#include <string_view>

namespace coaccel::cuda {

/// The category of a library of the vendor's by its name, such as "coaccel.cublas"; null when there is none.
COACCEL_DECL const boost::system::error_category* find_category(std::string_view name) noexcept;

} // namespace coaccel::cuda

#endif
