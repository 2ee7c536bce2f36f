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
    /// The CPUs that the program may run on, a bit for each; empty: those of the calling thread.
    std::span<const unsigned long> affinity;
};

struct spawned {
    pid_t pid = -1;
    unique_fd pidfd;
    /// Why there is no process; zero when there is.
    int error = 0;
    /// The system call that failed before the program could be executed; null: execve() failed.
    const char* call = nullptr;
};

/// Starts a program in a process group of its own, with no signal blocked or ignored.
///
/// The kernel kills it when the calling thread ends, also while it is stopped. Its descriptor is made together with it,
/// so that it never names another process.
spawned spawn(const spawn_plan& plan) noexcept;

/// Kills a child of this process. False: this process may not signal it.
bool kill_child(pid_t pid, int pidfd) noexcept;

} // namespace coaccel::worker

#endif
