#ifndef COACCEL_POSIX_FORK_DETECTOR_HPP
#define COACCEL_POSIX_FORK_DETECTOR_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>

namespace coaccel::detail {

/// Enables fork detection: children that this process forks after the first call are recognised by forked().
COACCEL_DECL void watch_forks() noexcept;

/// The number of forks without exec between the process that first called watch_forks() and this one. An object that
/// was made at another value belongs to a parent: its threads do not exist in this process.
COACCEL_DECL std::uint32_t fork_count() noexcept;

/// True in a child that was forked without exec after watch_forks(): its workers belong to the parent.
COACCEL_DECL bool forked() noexcept;

} // namespace coaccel::detail

#endif
