#ifndef COACCEL_CUDA_DRIVER_ERROR_HPP
#define COACCEL_CUDA_DRIVER_ERROR_HPP

#include "cuda/driver/driver_api.hpp"

#include <string>

namespace coaccel::cuda {

const boost::system::error_category& driver_category() noexcept;

/// Out of memory becomes errc::out_of_memory, as on every backend.
error_code make_error(CUresult r) noexcept;

/// Whether the error is sticky: our context is dead. Except after a reset of the primary context, so is every other
/// context of the process.
bool is_sticky(CUresult r) noexcept;

/// The driver's text and name for a result; empty if the table is null or has no text.
std::string vendor_text(const driver_api* api, CUresult r);

} // namespace coaccel::cuda

#endif
