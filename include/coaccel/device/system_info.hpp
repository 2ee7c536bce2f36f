#ifndef COACCEL_DEVICE_SYSTEM_INFO_HPP
#define COACCEL_DEVICE_SYSTEM_INFO_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/system_info.hpp>

#include <string>

namespace coaccel {

/// Inspects the machine: opens each library and queries the driver for its GPUs, but creates no context.
///
/// Blocks, for a second or more if the libraries must be read from disk: do not call it on a thread of an executor.
/// Missing libraries and hardware are part of the report, not errors.
///
/// Exceptions: std::bad_alloc; libraries that were opened stay open.
COACCEL_DECL system_info inspect_system();

/// A text for people to read: what was found and where, what is missing, and which features that disables.
///
/// Exceptions: std::bad_alloc.
COACCEL_DECL std::string to_string(const system_info& info);

} // namespace coaccel

#endif
