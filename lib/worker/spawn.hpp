#ifndef COACCEL_WORKER_SPAWN_HPP
#define COACCEL_WORKER_SPAWN_HPP

#include "worker/unique_fd.hpp"

#include <span>
#include <sys/resource.h>
#include <sys/types.h>

namespace coaccel::worker {

struct spawn_plan {
    const char* program = nullptr;
    char* const* arguments = nullptr;
    char* const* environment = nullptr;
    /// They become 0, 1, 2, … in the child, which has no others. None of them has one of those numbers.
    std::span<const int> descriptors;
    /// RLIMIT_CORE; null: as in this process.
    const rlimit* core = nullptr;
    /// Added to that of this process.
    int oom_score_raise = 0;
};

struct spawned {
    pid_t pid = -1;
    unique_fd pidfd;
    /// Why there is no process; zero when there is.
    int error = 0;
};

/// Starts a program in a process group of its own, with no signal blocked or ignored.
///
/// The kernel kills it when the calling thread ends, also while it is stopped. Its descriptor is made together with it,
/// so that it never names another process.
spawned spawn(const spawn_plan& plan) noexcept;

} // namespace coaccel::worker

#endif
