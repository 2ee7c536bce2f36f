#ifndef COACCEL_CUDA_ERROR_HPP
#define COACCEL_CUDA_ERROR_HPP

#include "cuda/load/driver_api.hpp"

#include <cublas_v2.h>
#include <nvrtc.h>
#include <string>

namespace coaccel::cuda {

// One category for each library, with the vendor's values and text; their conditions are coaccel's faults.
const boost::system::error_category& driver_category() noexcept;
const boost::system::error_category& cublas_category() noexcept;
const boost::system::error_category& nvrtc_category() noexcept;

/// Success for CUDA_SUCCESS. Out of memory is errc::out_of_memory, as on every backend.
error_code make_error(CUresult r) noexcept;
error_code make_error(cublasStatus_t s) noexcept;
error_code make_error(nvrtcResult r) noexcept;

/// Whether the error has killed every context of the process.
bool is_sticky(CUresult r) noexcept;

/// The text and the name that the driver behind the table has for a result; empty when it knows neither.
std::string vendor_text(const driver_api* api, CUresult r);

} // namespace coaccel::cuda

#endif
