#ifndef COACCEL_DEVICE_OVERTAKING_HPP
#define COACCEL_DEVICE_OVERTAKING_HPP

#include <coaccel/detail/request.hpp>

namespace coaccel::detail {

/// Whether a request may be started before others that came earlier, as far as its own ops are concerned: each touches
/// nothing but its operands, in device memory that is there already.
///
/// Not those that move host bytes, which might be another's, too; nor allocations, for which memory may have to come
/// back behind a request that waits; nor functions and kernels of the caller's, which may have state of their own.
COACCEL_DECL bool may_overtake(const request& r) noexcept;

/// Whether the order of two requests matters: one writes elements of a buffer that the other uses.
COACCEL_DECL bool conflict(const request& a, const request& b) noexcept;

} // namespace coaccel::detail

#endif
