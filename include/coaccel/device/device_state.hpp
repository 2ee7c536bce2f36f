#ifndef COACCEL_DEVICE_DEVICE_STATE_HPP
#define COACCEL_DEVICE_DEVICE_STATE_HPP

#include <coaccel/core/error.hpp>

#include <cstdint>
#include <string_view>

namespace coaccel {

/// Counts the contexts a device has had; the first is 1. Refs of another generation are stale.
using generation = std::uint32_t;

enum class device_state : std::uint8_t {
    /// The first context is being made.
    starting,
    /// Idle.
    ready,
    /// Ops are in flight.
    busy,
    /// The context shows signs of death; nothing more is started on it.
    suspect,
    /// A new context is being made; new work waits.
    rebuilding,
    /// The restart budget is spent or the hardware gone; everything is refused at once.
    failed,
    /// Shutting down.
    stopping,
    /// Shut down.
    stopped,
};

COACCEL_DECL std::string_view name(device_state s) noexcept;

/// Where a device stands, and why.
struct device_status {
    device_state state = device_state::starting; ///< The state.
    coaccel::generation generation = 0;          ///< Of the latest context.
    /// What killed or refused the last context; success when none was.
    error_code reason;

    friend bool operator==(const device_status&, const device_status&) = default;
};

} // namespace coaccel

#endif
