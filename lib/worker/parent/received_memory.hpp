#ifndef COACCEL_WORKER_PARENT_RECEIVED_MEMORY_HPP
#define COACCEL_WORKER_PARENT_RECEIVED_MEMORY_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/core/error.hpp>

#include <cstdint>
#include <string_view>

namespace coaccel::worker {

/// Whether a descriptor that a worker has sent can be that of its exported memory.
///
/// Memory of the host is checked completely. Memory of a GPU cannot be, because this process does not use the driver:
/// only descriptors that are certainly something else are refused. If the memory is not what it should be, the driver
/// refuses to map it in the next worker, which then gets a copy of the content.
///
/// Errors: errc::invalid_argument, with the reason.
COACCEL_DECL error_code check_received_memory(std::string_view backend, const detail::unique_fd& descriptor,
                                              std::uint64_t bytes, memory_access access);

} // namespace coaccel::worker

#endif
