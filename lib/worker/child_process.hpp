#ifndef COACCEL_WORKER_CHILD_PROCESS_HPP
#define COACCEL_WORKER_CHILD_PROCESS_HPP

#include "worker/affinity.hpp"
#include "worker/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace coaccel::worker {

struct child_setup {
    std::string program;
    /// Those after the name of the program.
    std::vector<std::string> arguments;
    /// All of it, as NAME=value.
    std::vector<std::string> environment;
    /// They become 3, 4, 5, … in the child, which has no others but the standard ones.
    std::vector<int> descriptors;
    /// RLIMIT_CORE; without a value that of this process.
    std::optional<rlimit> core{};
    /// How much sooner than this process the child is to be killed when the machine runs out of memory, of 1000.
    int oom_score_raise = 0;
    /// The CPUs that the child may run on; empty: those of the thread that starts it.
    cpu_mask affinity{};
};

class launcher;

/// A process started without a shell, killed and reaped with its owner, and killed by the kernel when this process
/// ends. Standard input and output are /dev/null.
///
/// Thread safety: kill() may be called at any time from any thread, the others by one thread at a time. A child that
/// this process forks can do nothing to it.
class COACCEL_DECL child_process {
public:
    struct end {
        bool by_signal;
        /// The exit status or the signal; -1 when it is unknown, because somebody else has reaped the process: the
        /// program itself, or the kernel where SIGCHLD is ignored. Since Linux 6.15 the kernel tells it all the same.
        int value;

        bool operator==(const end&) const = default;
    };

    /// errc::worker_missing when the program cannot be run, errc::out_of_memory when memory, descriptors or processes
    /// are short, errc::start_failed for the rest.
    static result<child_process> start(const child_setup& setup);

    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    ~child_process();

    pid_t pid() const noexcept { return pid_; }

    /// Readable once the process has ended.
    int pidfd() const noexcept { return pidfd_.get(); }

    /// What the process writes to its standard error; the reads do not block.
    unique_fd take_errors() noexcept { return std::move(errors_); }

    /// False: this process may not signal it any more, because it has changed its own user.
    bool kill() noexcept;

    /// How it ended, if it has.
    std::optional<end> ended() noexcept;

    /// Blocks until it has.
    end wait() noexcept;

private:
    child_process(pid_t pid, unique_fd pidfd, unique_fd errors, std::shared_ptr<launcher> thread) noexcept;

    void look(int options) noexcept;
    void finish() noexcept;

    // First, so that it goes last.
    std::shared_ptr<launcher> thread_;
    pid_t pid_;
    unique_fd pidfd_;
    unique_fd errors_;
    std::optional<end> end_;
};

} // namespace coaccel::worker

#endif
