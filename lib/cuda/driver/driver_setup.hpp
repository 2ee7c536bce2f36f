#ifndef COACCEL_CUDA_DRIVER_DRIVER_SETUP_HPP
#define COACCEL_CUDA_DRIVER_DRIVER_SETUP_HPP

#include "cuda/driver/driver_api.hpp"
#include "cuda/loader/table.hpp"

namespace coaccel::cuda {

/// 12.4 is the first version that reports kernel parameters. Without them a wrong launch would read out of bounds.
inline constexpr int oldest_driver = 12040;

/// Checks the version of the library at `api.path`, then fills the table from it.
error_code fill(driver_api& api, const symbol_lookup& find);

/// Initialises the driver of a filled table. Errors: errc::no_device without a GPU.
error_code start(const driver_api& api);

/// The driver if driver_api::load has succeeded, else null; does not open it.
const driver_api* loaded_driver() noexcept;

} // namespace coaccel::cuda

#endif
