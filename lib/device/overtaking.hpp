#ifndef COACCEL_DEVICE_OVERTAKING_HPP
#define COACCEL_DEVICE_OVERTAKING_HPP

#include <coaccel/core/detail/request.hpp>

namespace coaccel::detail {

/// Whether the ops of a request allow it to be started before earlier requests: all of them are pure.
///
/// False for requests that move host bytes, because another request may use the same host memory. False for
/// allocations, because they may need memory that a waiting request must release first. False for user functions and
/// user kernels, because they may have other state.
COACCEL_DECL bool may_overtake(const request& r) noexcept;

/// Whether the order of two requests matters: one writes elements of a buffer that the other uses.
COACCEL_DECL bool conflict(const request& a, const request& b) noexcept;

} // namespace coaccel::detail

#endif
