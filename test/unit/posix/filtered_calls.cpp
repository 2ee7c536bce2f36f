#include "posix/child_process.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <optional>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace test_posix_filtered_calls {

// Containers filter system calls. A filter applies to a thread and to the threads it creates: here to the launcher, as
// long as no other child keeps one alive.
namespace {

using namespace coaccel;
using namespace coaccel::detail;
namespace fs = std::filesystem;

const child_setup sleeper = {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .descriptors = {}};

/// Permanently, for this thread.
bool refuse(long call, int error)
{
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{static_cast<unsigned short>(std::size(steps)), steps};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/// Runs the function on a thread for which a system call fails.
template <class Function>
void without(long call, int error, Function function)
{
    bool refused = false;
    std::thread([&] {
        refused = refuse(call, error);
        if (refused)
            function();
    }).join();
    if (!refused)
        MESSAGE("not checked: system calls cannot be filtered here");
}

} // namespace

TEST_SUITE_BEGIN("filtered_calls");

TEST_CASE("a system call refused before exec is named in the error, and the program is not reported as missing")
{
    struct row {
        long call;
        const char* name;
    };
    for (const auto& r : {row{SYS_dup3, "dup3"}, row{SYS_getppid, "getppid"}}) {
        without(r.call, EPERM, [&] {
            const auto child = child_process::start(sleeper);
            REQUIRE_FALSE(child);
            const auto message = child.error().message();
            CAPTURE(message);
            CHECK(child.error() == errc::start_failed);
            CHECK(message.find(std::string("/bin/sleep: ") + r.name + ": ") != std::string::npos);
        });
    }
}

TEST_CASE("a child is killed where pidfd_send_signal is refused")
{
    for (const int error : {EPERM, ENOSYS}) {
        CAPTURE(error);
        without(SYS_pidfd_send_signal, error, [&] {
            auto child = child_process::start(sleeper).value();
            CHECK(child.kill());
            CHECK(child.wait() == child_process::end{true, SIGKILL});
            CHECK(child.kill());
            auto reaped = child_process::start(sleeper).value();
            REQUIRE(::kill(reaped.pid(), SIGKILL) == 0);
            REQUIRE(::waitpid(reaped.pid(), nullptr, 0) == reaped.pid());
            CHECK(reaped.kill());
        });
    }
}

TEST_CASE("a child inherits no other descriptors where close_range is refused")
{
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit wide{400'000, std::max<rlim_t>(400'000, before.rlim_max)}, all{before.rlim_max, before.rlim_max};
    // Only root may raise the hard limit.
    if (::setrlimit(RLIMIT_NOFILE, &wide) != 0)
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &all) == 0);
    std::vector<unique_fd> inherited;
    for (const int number : {50, 500, 70'000, 300'000})
        // Fails if the limit is lower.
        inherited.emplace_back(::fcntl(1, F_DUPFD, number));
    // Listing them takes several reads.
    for (int i = 0; i < 200; ++i)
        inherited.emplace_back(::fcntl(1, F_DUPFD, 100));
    without(SYS_close_range, ENOSYS, [&] {
        const auto child =
            child_process::start(
                {.program = "/bin/sh", .arguments = {"-c", "kill -STOP $$"}, .environment = {}, .descriptors = {1, 1}})
                .value();
        // Before that the loader may have files open.
        siginfo_t info;
        REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT) == 0);
        std::vector<int> numbers;
        for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(child.pid()) + "/fd"))
            numbers.push_back(std::stoi(entry.path().filename().string()));
        std::ranges::sort(numbers);
        CHECK(numbers == std::vector<int>{0, 1, 2, 3, 4});
    });
    inherited.clear();
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_SUITE_END();

} // namespace test_posix_filtered_calls
