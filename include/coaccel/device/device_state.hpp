#ifndef COACCEL_DEVICE_DEVICE_STATE_HPP
#define COACCEL_DEVICE_DEVICE_STATE_HPP

#include <coaccel/core/error.hpp>

#include <cstdint>
#include <string_view>

namespace coaccel {

/// The number of a device's context; the first is 1. Refs of another generation are stale.
using generation = std::uint32_t;

/// What a device is doing.
enum class device_state : std::uint8_t {
    /// The first context is being made.
    starting,
    /// Idle.
    ready,
    /// Ops are in flight.
    busy,
    /// The context shows signs of a fault; nothing more is started on it.
    suspect,
    /// A new context is being made; new work waits.
    rebuilding,
    /// The restart budget is spent or the hardware is no longer available; everything is refused at once.
    failed,
    /// Shutting down.
    stopping,
    /// Shut down.
    stopped,
};

/// The name of the enumerator, such as "ready".
COACCEL_DECL std::string_view to_string(device_state s) noexcept;

/// The state of a device, and the reason for it.
struct device_status {
    device_state state = device_state::starting; ///< The state.
    coaccel::generation generation = 0;          ///< The generation of the latest context.
    /// The error that killed or prevented the last context; success if there was none.
    error_code reason;

    friend bool operator==(const device_status&, const device_status&) = default;
};

} // namespace coaccel

#endif
