#ifndef COACCEL_CUDA_LOAD_DRIVER_SETUP_HPP
#define COACCEL_CUDA_LOAD_DRIVER_SETUP_HPP

#include "cuda/load/driver_api.hpp"
#include "cuda/load/table.hpp"

namespace coaccel::cuda {

/// 12.4: the first that tells the parameters of a kernel, without which a wrong launch would read what is not there.
inline constexpr int oldest_driver = 12040;

/// Fills the table from the library at `path`, once its version has been found good.
error_code fill(driver_api& api, const symbol_lookup& find, const std::string& path);

/// Initialises the driver behind a filled table. errc::no_device when it has no GPU.
error_code start(const driver_api& api);

/// The driver when load_driver has succeeded, else null; opens nothing.
const driver_api* loaded_driver() noexcept;

} // namespace coaccel::cuda

#endif
