#ifndef COACCEL_POSIX_SPAWN_HPP
#define COACCEL_POSIX_SPAWN_HPP

#include "posix/unique_fd.hpp"

#include <chrono>
#include <mutex>
#include <span>
#include <sys/resource.h>
#include <sys/types.h>

namespace coaccel::detail {

struct spawn_plan {
    const char* program = nullptr;
    char* const* arguments = nullptr;
    char* const* environment = nullptr;
    /// They become 0, 1, 2, … in the child, which has no others. None of them may have one of those numbers.
    std::span<const int> descriptors;
    /// RLIMIT_CORE; null: the limit of this process.
    const rlimit* core = nullptr;
    /// Added to the OOM score of this process.
    int oom_score_raise = 0;
    /// The CPUs on which the program may run, one bit per CPU; empty: those of the calling thread.
    std::span<const unsigned long> affinity;
    /// How long the child may take to execute the program.
    std::chrono::milliseconds exec_limit = std::chrono::seconds(5);
};

struct spawned {
    pid_t pid = -1;
    unique_fd pidfd;
    /// Why the start failed; zero if it succeeded.
    int error = 0;
    /// The system call that failed before the program could be executed; null: execve() failed.
    const char* call = nullptr;
    /// The child had not executed the program within the limit, and was killed.
    bool late = false;
};

/// A child that may not have executed its program yet. Until it does, the thread that starts it is suspended: for ever,
/// if something stops the child or its execve() hangs. Another thread ends that.
///
/// Thread safety: give_up() by any thread.
class starting_child {
public:
    /// Kills the child, unless it has executed its program.
    void give_up() noexcept;

private:
    friend spawned spawn(const spawn_plan& plan, starting_child& child) noexcept;

    /// The thread that starts the child continues. Returns whether the child was killed.
    bool started() noexcept;

    std::mutex mutex_;
    /// Written by the kernel before the child begins; -1 until then.
    int pidfd_ = -1;
    bool over_ = false;
    bool killed_ = false;
};

/// Starts a program in its own process group, with no signal blocked or ignored.
///
/// The kernel kills it when the calling thread ends, even while it is stopped. The pidfd is created together with the
/// process, so it never refers to another process.
spawned spawn(const spawn_plan& plan, starting_child& child) noexcept;

/// Kills a child of this process. Returns false if this process may not signal it.
bool kill_child(pid_t pid, int pidfd) noexcept;

} // namespace coaccel::detail

#endif
