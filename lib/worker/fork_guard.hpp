#ifndef COACCEL_WORKER_FORK_GUARD_HPP
#define COACCEL_WORKER_FORK_GUARD_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>

namespace coaccel::worker {

/// From the first call on, the children this process forks know that they are such.
COACCEL_DECL void watch_forks() noexcept;

/// How many forks without exec lie between the process that called watch_forks() first and this one. What was made when
/// it had another value belongs to a parent: its threads are not in this process.
COACCEL_DECL std::uint32_t fork_count() noexcept;

/// True in a child that was forked without exec after watch_forks(): the workers it knows are its parent's.
COACCEL_DECL bool forked() noexcept;

} // namespace coaccel::worker

#endif
