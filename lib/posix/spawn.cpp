#include "posix/spawn.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// posix_spawn() returns no pidfd, and a pidfd opened afterwards may refer to another process: the child may have ended,
// and the program may have reaped it. Nor can posix_spawn() make the kernel kill the child with its parent.

// clone() of the C library. Under this name the sanitizers, which would treat it as a fork, do not intercept it.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace coaccel::detail {
namespace {

constexpr std::size_t stack_bytes = std::size_t(64) << 10;
constexpr int signals = 64;
// The kernel's format: one bit per signal.
using signal_mask = std::uint64_t;
constexpr signal_mask every_signal = ~signal_mask(0);

struct task {
    const spawn_plan& plan;
    pid_t parent;
    // The value for /proc/self/oom_score_adj; empty: unchanged.
    std::array<char, 16> oom_score;
    std::size_t oom_score_length;
    // The soft limit of this process.
    unsigned descriptor_limit;
    int error;
    // As in `spawned`.
    const char* call;
};

void set_mask(const signal_mask& mask, signal_mask* before) noexcept
{
    (void)::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, before, sizeof mask);
}

#if defined(__clang__)
#define COACCEL_UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define COACCEL_UNCHECKED __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))
#endif

/// The kernel's format.
struct directory_entry {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t bytes;
    unsigned char type;
    char name[1];
};

/// Closes all descriptors from `first` on, for kernels and system call filters without close_range(). Runs in the
/// child, like prepare().
COACCEL_UNCHECKED void close_from(int first, unsigned limit) noexcept
{
    const long folder = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        for (auto i = static_cast<unsigned>(first); i < limit; ++i)
            (void)::syscall(SYS_close, i);
        return;
    }
    alignas(directory_entry) char entries[1024];
    for (;;) {
        const long bytes = ::syscall(SYS_getdents64, folder, entries, sizeof entries);
        if (bytes <= 0)
            break;
        for (long at = 0; at < bytes;) {
            const auto* entry = reinterpret_cast<const directory_entry*>(entries + at);
            at += entry->bytes;
            long number = 0;
            const char* digit = entry->name;
            for (; *digit >= '0' && *digit <= '9'; ++digit)
                number = number * 10 + (*digit - '0');
            // The listing continues after the last number, so closing a descriptor skips none.
            if (digit != entry->name && number >= first && number != folder)
                (void)::syscall(SYS_close, number);
        }
    }
    (void)::syscall(SYS_close, folder);
}

/// Runs in the child, which shares the memory of its parent until execve(): only system calls, without the interceptors
/// of sanitizers, which would treat them as calls of the parent.
COACCEL_UNCHECKED int prepare(task& t) noexcept
{
    // Signals are blocked, so that no handler of the parent runs here.
    const unsigned char none[64] = {};
    for (int s = 1; s <= signals; ++s)
        (void)::syscall(SYS_rt_sigaction, s, none, nullptr, sizeof(signal_mask));
    (void)::syscall(SYS_setpgid, 0, 0);
    t.call = "prctl";
    if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, long(SIGKILL), 0L, 0L, 0L) != 0)
        return errno;
    // The parent may have ended before that. Zero: it is in another PID namespace, after unshare(CLONE_NEWPID).
    t.call = "getppid";
    if (const long parent = ::syscall(SYS_getppid); parent != t.parent && parent != 0)
        return ESRCH;
    t.call = "dup3";
    const auto count = static_cast<int>(t.plan.descriptors.size());
    for (int i = 0; i < count; ++i)
        if (::syscall(SYS_dup3, t.plan.descriptors.data()[i], i, 0) != i)
            return errno;
    if (::syscall(SYS_close_range, count, ~0U, 0) != 0)
        close_from(count, t.descriptor_limit);
    if (t.plan.core)
        (void)::syscall(SYS_prlimit64, 0, RLIMIT_CORE, t.plan.core, nullptr);
    // Fails if the program may no longer use any of these CPUs.
    if (!t.plan.affinity.empty())
        (void)::syscall(SYS_sched_setaffinity, 0, t.plan.affinity.size_bytes(), t.plan.affinity.data());
    if (t.oom_score_length != 0) {
        const long file = ::syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        // Without /proc the score stays unchanged, which is harmless.
        (void)!::syscall(SYS_write, file, t.oom_score.data(), t.oom_score_length);
        (void)::syscall(SYS_close, file);
    }
    (void)::syscall(SYS_rt_sigprocmask, SIG_SETMASK, none, nullptr, sizeof(signal_mask));
    t.call = nullptr;
    (void)::syscall(SYS_execve, t.plan.program, t.plan.arguments, t.plan.environment);
    return errno;
}

COACCEL_UNCHECKED int run_child(void* argument) noexcept
{
    auto& t = *static_cast<task*>(argument);
    t.error = prepare(t);
    ::syscall(SYS_exit_group, 127);
    return 127;
}

/// Computes the child's value of /proc/self/oom_score_adj.
void set_oom_score(task& t) noexcept
{
    if (t.plan.oom_score_raise == 0)
        return;
    char text[16] = {};
    const unique_fd file(::open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC));
    if (!file || ::read(file.get(), text, sizeof text - 1) <= 0)
        return;
    const int score = std::min(std::atoi(text) + t.plan.oom_score_raise, 1000);
    const auto end = std::to_chars(t.oom_score.data(), t.oom_score.data() + t.oom_score.size(), score).ptr;
    t.oom_score_length = static_cast<std::size_t>(end - t.oom_score.data());
}

void reap(idtype_t kind, int id) noexcept
{
    while (::waitid(kind, static_cast<id_t>(id), nullptr, WEXITED) != 0 && errno == EINTR) {
    }
}

unsigned descriptor_limit() noexcept
{
    rlimit limit{};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
    return known ? static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, INT_MAX)) : 1U << 16;
}

/// -1 if it is unknown.
pid_t pid_of(int pidfd) noexcept
{
    char path[40];
    (void)std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    char text[512] = {};
    const unique_fd file(::open(path, O_RDONLY | O_CLOEXEC));
    if (!file || ::read(file.get(), text, sizeof text - 1) <= 0)
        return -1;
    const char* const line = std::strstr(text, "Pid:\t");
    return line ? std::atoi(line + 5) : -1;
}

} // namespace

bool kill_child(pid_t pid, int pidfd) noexcept
{
    if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0)
        return true;
    if (errno != EPERM && errno != ENOSYS)
        return true;
    // System call filters may refuse it too. Until the child has been reaped, its pid refers to no other process.
    siginfo_t info{};
    if (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return errno == ECHILD;
    // Other values would mean several processes.
    return pid > 0 && (::kill(pid, SIGKILL) == 0 || errno != EPERM);
}

void starting_child::give_up() noexcept
{
    const std::scoped_lock lock(mutex_);
    const int pidfd = std::atomic_ref(pidfd_).load();
    if (!over_ && pidfd >= 0)
        killed_ = kill_child(pid_of(pidfd), pidfd) || killed_;
}

bool starting_child::started() noexcept
{
    const std::scoped_lock lock(mutex_);
    over_ = true;
    return killed_;
}

spawned spawn(const spawn_plan& plan, starting_child& child) noexcept
{
    void* const stack =
        ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return {-1, {}, errno, "mmap"};
    task t{plan, ::getpid(), {}, 0, descriptor_limit(), 0, nullptr};
    set_oom_score(t);
    spawned made;
    signal_mask before = 0;
    set_mask(every_signal, &before);
    made.pid = __clone(&run_child, static_cast<char*>(stack) + stack_bytes,
                       CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &t, &child.pidfd_);
    const int code = errno;
    // No other thread uses the descriptor from here on, so it may be closed.
    const bool killed = child.started();
    const int pidfd = child.pidfd_;
    set_mask(before, nullptr);
    ::munmap(stack, stack_bytes);
    if (made.pid < 0)
        return {-1, {}, code, "clone"};
    if (pidfd < 0) {
        // The kernel is older than CLONE_PIDFD and ignores it. The pid of a child that has not been reaped is not
        // reused.
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(made.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
            (void)::kill(made.pid, SIGKILL);
            reap(P_PID, made.pid);
        }
        return {-1, {}, ENOSYS, "clone with CLONE_PIDFD"};
    }
    const unique_fd first(pidfd);
    made.pidfd = unique_fd(t.error == 0 && !killed ? ::fcntl(pidfd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1);
    if (made.pidfd)
        return made;
    if (t.error == 0 && killed) {
        // Again, because the kernel tells the number of the descriptor shortly before it can be used: that signal may
        // have reached no process.
        if (kill_child(made.pid, pidfd))
            reap(P_PIDFD, pidfd);
        return {-1, {}, ETIMEDOUT, nullptr, true};
    }
    const int why = t.error != 0 ? t.error : errno;
    const char* const call = t.error != 0 ? t.call : "fcntl";
    if (t.error != 0 || kill_child(made.pid, pidfd))
        reap(P_PIDFD, pidfd);
    return {-1, {}, why, call};
}

} // namespace coaccel::detail
