#ifndef COACCEL_CUDA_JIT_NVRTC_ERROR_HPP
#define COACCEL_CUDA_JIT_NVRTC_ERROR_HPP

#include <coaccel/core/error.hpp>

#include <nvrtc.h>

namespace coaccel::cuda {

const boost::system::error_category& nvrtc_category() noexcept;

error_code make_error(nvrtcResult s) noexcept;

} // namespace coaccel::cuda

#endif
