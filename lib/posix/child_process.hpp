#ifndef COACCEL_POSIX_CHILD_PROCESS_HPP
#define COACCEL_POSIX_CHILD_PROCESS_HPP

#include "posix/affinity.hpp"
#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace coaccel::detail {

struct child_setup {
    std::string program;
    /// Arguments after the name of the program.
    std::vector<std::string> arguments;
    /// The complete environment, as NAME=value.
    std::vector<std::string> environment;
    /// They become 3, 4, 5, … in the child, which has no others except the standard ones.
    std::vector<int> descriptors;
    /// RLIMIT_CORE; without a value the limit of this process.
    std::optional<rlimit> core{};
    /// Added to the OOM score of this process, out of 1000: the kernel kills the child first when memory runs out.
    int oom_score_raise = 0;
    /// The CPUs on which the child may run; empty: those of the thread that starts it.
    cpu_mask affinity{};
    /// How long the new process may take to execute the program, which it does not if something stops it before.
    std::chrono::milliseconds exec_limit = std::chrono::seconds(5);
};

class launcher;

/// A process started without a shell. The destructor kills and reaps it, and the kernel kills it when this process
/// ends. Standard input and output are /dev/null.
///
/// Thread safety: kill() may be called at any time from any thread, the other functions by one thread at a time. In a
/// forked child of this process the functions have no effect.
class COACCEL_DECL child_process {
public:
    struct end {
        bool by_signal;
        /// The exit status or the signal; -1 if it is unknown, because the program itself has reaped the process, or
        /// the kernel did where SIGCHLD is ignored. Since Linux 6.15 the kernel reports it even then.
        int value;

        bool operator==(const end&) const = default;
    };

    /// Errors: errc::worker_missing if the program cannot be run, errc::out_of_memory if memory, descriptors or
    /// processes are exhausted, errc::start_failed otherwise.
    static result<child_process> start(const child_setup& setup);

    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    ~child_process();

    pid_t pid() const noexcept { return pid_; }

    /// Readable once the process has ended.
    int pidfd() const noexcept { return pidfd_.get(); }

    /// The read end of its standard error; reads do not block.
    unique_fd take_errors() noexcept { return std::move(errors_); }

    /// Returns false if this process may no longer signal it, because this process has changed its user.
    bool kill() noexcept;

    /// How the process ended, or nothing if it is still running.
    std::optional<end> ended() noexcept;

    /// Blocks until the process has ended.
    end wait() noexcept;

private:
    child_process(pid_t pid, unique_fd pidfd, unique_fd errors, std::shared_ptr<launcher> thread) noexcept;

    void look(int options) noexcept;
    void finish() noexcept;

    // First member, so that it is destroyed last.
    std::shared_ptr<launcher> thread_;
    pid_t pid_;
    unique_fd pidfd_;
    unique_fd errors_;
    std::optional<end> end_;
};

} // namespace coaccel::detail

#endif
