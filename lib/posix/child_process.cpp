#include "posix/child_process.hpp"

#include "posix/fork_detector.hpp"
#include "posix/launcher.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace coaccel::detail {
namespace {

constexpr child_process::end status_unknown{false, -1};

/// How long to wait for the end of a process that this one may not signal, in milliseconds.
constexpr int patience = 1000;

error_code system_failure(int code, errc otherwise, const std::string& what)
{
    const bool short_of = code == EMFILE || code == ENFILE || code == ENOMEM || code == EAGAIN;
    return make_error_with_message(short_of ? errc::out_of_memory : otherwise,
                                   what + ": " + std::generic_category().message(code));
}

// A copy whose number differs from all those that the child will use.
result<unique_fd> copy_above(int descriptor, int least)
{
    unique_fd copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, least));
    if (copy)
        return copy;
    // EINVAL: the limit of this process is below `least`.
    return system_failure(errno == EINVAL ? EMFILE : errno, errc::start_failed, "a descriptor for a worker");
}

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

/// Like the first version of pidfd_info of Linux 6.15, which reports the status even of a reaped process.
struct process_info {
    std::uint64_t mask;
    std::uint64_t rest[6];
    std::uint32_t group;
    std::int32_t status;
};
static_assert(sizeof(process_info) == 64);
constexpr std::uint64_t with_status = 1 << 3;
constexpr unsigned long get_info = _IOWR(0xFF, 11, process_info);

std::optional<int> status_of_reaped(int pidfd) noexcept
{
    for (int tries = 0; tries < 2; ++tries) {
        errno = 0;
        process_info info{};
        info.mask = with_status;
        if (::ioctl(pidfd, get_info, &info) == 0 && (info.mask & with_status) != 0)
            return info.status;
        // The process has ended and the kernel is about to reap it; the pidfd reports a hang-up once that is done.
        pollfd reaped{pidfd, 0, 0};
        if (tries != 0 || errno == ENOTTY || ::poll(&reaped, 1, 100) <= 0)
            break;
    }
    return std::nullopt;
}

child_process::end end_of(int status) noexcept
{
    if (WIFSIGNALED(status))
        return {true, WTERMSIG(status)};
    return {false, WEXITSTATUS(status)};
}

} // namespace

result<child_process> child_process::start(const child_setup& setup)
{
    watch_forks();
    if (forked())
        return make_error_with_message(errc::start_failed,
                                       "a forked child of the process that has workers cannot start any");

    auto thread = launcher::shared();
    if (!thread)
        return make_error_with_message(errc::out_of_memory, "no thread to start a worker from");
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return system_failure(errno, errc::start_failed, "a pipe for a worker");
    auto errors = above_standard(ends[0]);
    const auto errors_out = above_standard(ends[1]);
    if (!errors || !errors_out)
        return system_failure(errno, errc::start_failed, "a pipe for a worker");
    // Only the end that this process reads: the child's end must block.
    ::fcntl(errors.get(), F_SETFL, O_NONBLOCK);
    const auto null = above_standard(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null)
        return system_failure(errno, errc::start_failed, "/dev/null for a worker");

    std::vector<int> sources = {null.get(), null.get(), errors_out.get()};
    sources.insert(sources.end(), setup.descriptors.begin(), setup.descriptors.end());
    std::vector<unique_fd> copies;
    for (int& source : sources) {
        BOOST_OUTCOME_TRY(auto copy, copy_above(source, static_cast<int>(sources.size())));
        source = copy.get();
        copies.push_back(std::move(copy));
    }
    const auto arguments = pointers(setup.arguments, &setup.program);
    const auto environment = pointers(setup.environment);
    spawn_plan plan;
    plan.program = setup.program.c_str();
    plan.arguments = arguments.data();
    plan.environment = environment.data();
    plan.descriptors = sources;
    plan.core = setup.core ? &*setup.core : nullptr;
    plan.oom_score_raise = setup.oom_score_raise;
    // Not the affinity of the launcher thread, which inherited it from the thread that first needed the launcher.
    const auto affinity = setup.affinity.empty() ? affinity_of_thread() : setup.affinity;
    plan.affinity = affinity;
    plan.exec_limit = setup.exec_limit;
    auto made = thread->start(plan);
    if (made.late)
        return make_error_with_message(errc::start_failed, setup.program + ": not executed within " +
                                                               std::to_string(setup.exec_limit.count()) +
                                                               " ms, so the new process was killed");
    if (made.error != 0 && made.call)
        return system_failure(made.error, errc::start_failed, setup.program + ": " + made.call);
    if (made.error != 0)
        return system_failure(made.error, errc::worker_missing, setup.program);
    return child_process(made.pid, std::move(made.pidfd), std::move(errors), std::move(thread));
}

child_process::child_process(pid_t pid, unique_fd pidfd, unique_fd errors, std::shared_ptr<launcher> thread) noexcept
    : thread_(std::move(thread)), pid_(pid), pidfd_(std::move(pidfd)), errors_(std::move(errors))
{}

child_process::child_process(child_process&& other) noexcept = default;

child_process& child_process::operator=(child_process&& other) noexcept
{
    if (this != &other) {
        finish();
        thread_ = std::move(other.thread_);
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

bool child_process::kill() noexcept
{
    if (!pidfd_ || forked())
        return true;
    return kill_child(pid_, pidfd_.get());
}

std::optional<child_process::end> child_process::ended() noexcept
{
    look(WNOHANG);
    return end_;
}

child_process::end child_process::wait() noexcept
{
    look(0);
    return end_.value_or(status_unknown);
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
    if (code != 0) {
        const auto status = status_of_reaped(pidfd_.get());
        end_ = status ? end_of(*status) : status_unknown;
    } else if (info.si_pid != 0)
        end_ = end{info.si_code != CLD_EXITED, info.si_status};
}

void child_process::finish() noexcept
{
    if (end_)
        return;
    if (kill())
        return look(0);
    // The process continues, and waiting for it would have no time limit. When it ends it stays a zombie until this
    // process ends.
    pollfd over{pidfd_.get(), POLLIN, 0};
    (void)::poll(&over, 1, patience);
    look(WNOHANG);
}

} // namespace coaccel::detail
