#include "child.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <map>
#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace test {
namespace {

constexpr auto patience = std::chrono::seconds(20);

std::map<std::string, child_function>& children()
{
    static std::map<std::string, child_function> known;
    return known;
}

pid_t spawn(const std::string& name, const std::vector<std::string>& arguments, int output)
{
    std::vector<std::string> words{"/proc/self/exe", "--child", name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& w : words)
        argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    pid_t pid = -1;
    const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? -1 : pid;
}

sem_t said;

void say_where(int)
{
    std::array<void*, 48> frames{};
    constexpr char line[] = "a thread is at:\n";
    (void)!::write(STDERR_FILENO, line, sizeof(line) - 1);
    ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), static_cast<int>(frames.size())), STDERR_FILENO);
    ::sem_post(&said);
}

// Threads print one after the other. A thread that is stuck in the kernel prints nothing, so the wait is limited.
void wait_until_said()
{
    const auto end_time = std::chrono::system_clock::now().time_since_epoch() + std::chrono::milliseconds(200);
    const auto whole = std::chrono::floor<std::chrono::seconds>(end_time);
    const timespec end{whole.count(), std::chrono::nanoseconds(end_time - whole).count()};
    while (::sem_timedwait(&said, &end) != 0 && errno == EINTR) {
    }
}

// Prints the stacks of all threads if the child does not end in time, then ends it.
void watch_over_child()
{
    // A child that ends in time ends this thread with it.
    std::this_thread::sleep_for(patience - std::chrono::seconds(5));
    ::sem_init(&said, 0, 0);
    struct sigaction action{};
    action.sa_handler = &say_where;
    (void)::sigaction(SIGUSR1, &action, nullptr);
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        const pid_t id = static_cast<pid_t>(std::stol(thread.path().filename()));
        if (id != ::gettid() && ::syscall(SYS_tgkill, ::getpid(), id, SIGUSR1) == 0)
            wait_until_said();
    }
    std::_Exit(4);
}

} // namespace

child::child(const char* name, child_function function)
{
    children()[name] = function;
}

int run_child(const std::string& name, const std::vector<std::string>& arguments, std::string& output)
{
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
        return -1;
    const pid_t pid = spawn(name, arguments, pipe[1]);
    ::close(pipe[1]);
    const auto end = std::chrono::steady_clock::now() + patience;
    std::array<char, 4096> text{};
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        pollfd ready{pipe[0], POLLIN, 0};
        const int n = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count())) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            output += "\n(killed: it did not end)\n";
            ::kill(pid, SIGKILL);
            break;
        }
        const ssize_t got = ::read(pipe[0], text.data(), text.size());
        if (got <= 0)
            break;
        output.append(text.data(), static_cast<std::size_t>(got));
    }
    ::close(pipe[0]);
    int status = 0;
    if (pid < 0 || ::waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main_of_child(int argc, char** argv)
{
    if (argc < 3 || std::strcmp(argv[1], "--child") != 0)
        return -1;
    // The test helpers use assertions, here outside of a test case.
    doctest::Context context;
    context.setAsDefaultForAssertsOutOfTestCases();
    context.setAssertHandler([](const doctest::AssertData& a) {
        if (!a.m_failed)
            return;
        std::cout << a.m_file << ':' << a.m_line << ": " << a.m_expr << " does not hold" << std::endl;
        std::_Exit(3);
    });
    const auto found = children().find(argv[2]);
    if (found == children().end()) {
        std::cerr << "no such child: " << argv[2] << '\n';
        return 2;
    }
    std::thread(&watch_over_child).detach();
    return found->second({argv + 3, argv + argc});
}

} // namespace test
