#include "worker/child_process.hpp"

#include "worker/fork_guard.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace coaccel::worker {
namespace {

constexpr child_process::end reaped_elsewhere{false, -1};

error_code system_failure(int code, errc otherwise, const std::string& what)
{
    const bool short_of = code == EMFILE || code == ENFILE || code == ENOMEM || code == EAGAIN;
    return note_error(short_of ? errc::out_of_memory : otherwise, what + ": " + std::generic_category().message(code));
}

// A copy with a number that is none of those the child will use.
result<unique_fd> copy_above(int descriptor, int least)
{
    unique_fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, least));
    if (copy)
        return copy;
    // EINVAL: the limit of this process is below `least`.
    return system_failure(errno == EINVAL ? EMFILE : errno, errc::start_failed, "a descriptor for a worker");
}

class spawn_plan {
public:
    spawn_plan() noexcept
    {
        failure_ = ::posix_spawn_file_actions_init(&actions_);
        const int code = ::posix_spawnattr_init(&attributes_);
        note(code);
    }
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;
    ~spawn_plan()
    {
        ::posix_spawn_file_actions_destroy(&actions_);
        ::posix_spawnattr_destroy(&attributes_);
    }

    void give(int source, int target) noexcept { note(::posix_spawn_file_actions_adddup2(&actions_, source, target)); }

    void close_from(int first) noexcept { note(::posix_spawn_file_actions_addclosefrom_np(&actions_, first)); }

    // A process group of its own leaves a Ctrl-C in the terminal to this process.
    void detach_from_signals() noexcept
    {
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        note(::posix_spawnattr_setsigmask(&attributes_, &none));
        note(::posix_spawnattr_setsigdefault(&attributes_, &all));
        note(::posix_spawnattr_setpgroup(&attributes_, 0));
        note(::posix_spawnattr_setflags(&attributes_,
                                        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
    }

    int failure() const noexcept { return failure_; }

    int run(pid_t& pid, const char* program, char* const* arguments, char* const* environment) const noexcept
    {
        return ::posix_spawn(&pid, program, &actions_, &attributes_, arguments, environment);
    }

private:
    void note(int code) noexcept
    {
        if (failure_ == 0)
            failure_ = code;
    }

    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
    int failure_ = 0;
};

std::vector<char*> pointers(const std::vector<std::string>& texts, const std::string* first = nullptr)
{
    std::vector<char*> all;
    if (first)
        all.push_back(const_cast<char*>(first->c_str()));
    for (const auto& text : texts)
        all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
}

// Calls of glibc 2.36 that its header does not declare for C++.
int open_pidfd(pid_t pid) noexcept
{
    return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

void send_signal(int pidfd, int signal) noexcept
{
    (void)::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

} // namespace

result<child_process> child_process::start(const child_setup& setup)
{
    watch_forks();
    if (forked())
        return note_error(errc::start_failed, "a forked child of the process that has workers cannot start any");

    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return system_failure(errno, errc::start_failed, "a pipe for a worker");
    unique_fd errors(ends[0]), errors_out(ends[1]);
    // Not of the end that the child writes to, which shall block.
    ::fcntl(errors.get(), F_SETFL, O_NONBLOCK);
    const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null)
        return system_failure(errno, errc::start_failed, "/dev/null for a worker");

    std::vector<int> sources = {null.get(), null.get(), errors_out.get()};
    sources.insert(sources.end(), setup.descriptors.begin(), setup.descriptors.end());
    const int after = static_cast<int>(sources.size());
    spawn_plan plan;
    std::vector<unique_fd> copies;
    for (int target = 0; target < after; ++target) {
        BOOST_OUTCOME_TRY(auto copy, copy_above(sources[static_cast<std::size_t>(target)], after));
        plan.give(copy.get(), target);
        copies.push_back(std::move(copy));
    }
    plan.close_from(after);
    plan.detach_from_signals();
    if (plan.failure() != 0)
        return system_failure(plan.failure(), errc::start_failed, "the start of a worker");

    pid_t pid = 0;
    const int code = plan.run(pid, setup.program.c_str(), pointers(setup.arguments, &setup.program).data(),
                              pointers(setup.environment).data());
    if (code != 0)
        return system_failure(code, errc::worker_missing, setup.program);
    unique_fd pidfd(open_pidfd(pid));
    if (!pidfd) {
        const auto failure = system_failure(errno, errc::start_failed, "a descriptor for the process of a worker");
        // It has not been reaped yet, unless by somebody who waits for all children; then its number may be another's.
        if (::waitid(P_PID, static_cast<id_t>(pid), nullptr, WEXITED | WNOHANG | WNOWAIT) == 0) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
        return failure;
    }
    return child_process(pid, std::move(pidfd), std::move(errors));
}

child_process::child_process(pid_t pid, unique_fd pidfd, unique_fd errors) noexcept
    : pid_(pid), pidfd_(std::move(pidfd)), errors_(std::move(errors))
{}

child_process::child_process(child_process&& other) noexcept = default;

child_process& child_process::operator=(child_process&& other) noexcept
{
    if (this != &other) {
        finish();
        pid_ = other.pid_;
        pidfd_ = std::move(other.pidfd_);
        errors_ = std::move(other.errors_);
        end_ = other.end_;
    }
    return *this;
}

child_process::~child_process()
{
    finish();
}

void child_process::kill() noexcept
{
    if (pidfd_ && !forked())
        send_signal(pidfd_.get(), SIGKILL);
}

std::optional<child_process::end> child_process::ended() noexcept
{
    look(WNOHANG);
    return end_;
}

child_process::end child_process::wait() noexcept
{
    look(0);
    return end_.value_or(reaped_elsewhere);
}

void child_process::look(int options) noexcept
{
    if (end_ || !pidfd_ || forked())
        return;
    siginfo_t info{};
    int code = 0;
    do
        code = ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | options);
    while (code != 0 && errno == EINTR);
    if (code != 0)
        end_ = reaped_elsewhere;
    else if (info.si_pid != 0)
        end_ = end{info.si_code != CLD_EXITED, info.si_status};
}

void child_process::finish() noexcept
{
    if (!end_)
        kill();
    look(0);
}

} // namespace coaccel::worker
