#ifndef COACCEL_DEVICE_SHUTDOWN_HPP
#define COACCEL_DEVICE_SHUTDOWN_HPP

#include <cstdint>

namespace coaccel {

/// What happens to the remaining work of a device when it is shut down.
enum class shutdown : std::uint8_t {
    /// All accepted work runs to its end first.
    drain,
    /// All work completes with errc::device_stopped as soon as the device no longer uses it.
    abandon,
};

} // namespace coaccel

#endif
