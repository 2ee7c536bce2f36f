#ifndef COACCEL_TEST_SUPPORT_UNDYING_HPP
#define COACCEL_TEST_SUPPORT_UNDYING_HPP

#include <csignal>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <utility>

namespace test {

/// A process that SIGKILL does not end for now, like one that is blocked in a driver call. Works through ptrace, which
/// binds it to the thread that created it.
class undying {
public:
    explicit undying(pid_t process) noexcept
        : process_(process), held_(::ptrace(PTRACE_SEIZE, process, nullptr, PTRACE_O_TRACEEXIT) == 0)
    {}
    undying(const undying&) = delete;
    undying& operator=(const undying&) = delete;
    ~undying() { die(); }

    /// False if processes must not be traced.
    explicit operator bool() const noexcept { return held_; }

    void die() noexcept
    {
        if (!std::exchange(held_, false))
            return;
        ::kill(process_, SIGKILL);
        constexpr int at_its_end = SIGTRAP | PTRACE_EVENT_EXIT << 8;
        int status = 0;
        while (::waitpid(process_, &status, __WALL) == process_ && status >> 8 != at_its_end)
            ::ptrace(PTRACE_CONT, process_, nullptr, nullptr);
        ::ptrace(PTRACE_DETACH, process_, nullptr, nullptr);
    }

private:
    const pid_t process_;
    bool held_;
};

} // namespace test

#endif
