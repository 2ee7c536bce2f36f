#include "posix/child_process.hpp"

#include "posix/fork_detector.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace test_posix_child_process {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
namespace fs = std::filesystem;
using end = child_process::end;

child_setup shell(std::string script)
{
    return {.program = "/bin/sh", .arguments = {"-c", std::move(script)}, .environment = {}, .descriptors = {}};
}

const child_setup sleeper = {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .descriptors = {}};

std::string read_all(const unique_fd& from)
{
    std::string all;
    char bytes[512];
    for (;;) {
        pollfd wait{from.get(), POLLIN, 0};
        ::poll(&wait, 1, -1);
        const auto n = ::read(from.get(), bytes, sizeof bytes);
        if (n <= 0)
            return all;
        all.append(bytes, static_cast<std::size_t>(n));
    }
}

std::string text_of(const fs::path& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<int> descriptors_of(const std::string& process)
{
    std::vector<int> numbers;
    for (const auto& entry : fs::directory_iterator("/proc/" + process + "/fd"))
        numbers.push_back(std::stoi(entry.path().filename().string()));
    std::ranges::sort(numbers);
    return numbers;
}

bool has_children()
{
    siginfo_t info;
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/// A shell that has stopped itself, so that its state can be inspected.
child_process stopped_shell(std::vector<int> descriptors = {}, std::vector<std::string> environment = {})
{
    auto setup = shell("kill -STOP $$");
    setup.descriptors = std::move(descriptors);
    setup.environment = std::move(environment);
    auto child = child_process::start(setup).value();
    siginfo_t info;
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT) == 0);
    return child;
}

std::string proc(const child_process& child)
{
    return "/proc/" + std::to_string(child.pid());
}

/// A program that the kernel does not open for execution while this has a lease on it: a child waits for that in
/// execve(), at most the 45 s of /proc/sys/fs/lease-break-time.
class held_program {
public:
    held_program() : old_(std::signal(SIGIO, SIG_IGN))
    {
        fs::copy_file("/bin/true", path);
        file_ = unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        held_ = ::fcntl(file_.get(), F_SETLEASE, F_WRLCK) == 0;
        if (!held_)
            MESSAGE("not checked: the temporary folder has no leases");
    }
    ~held_program()
    {
        let_go();
        fs::remove(path);
        std::signal(SIGIO, old_);
    }

    explicit operator bool() const { return held_; }
    void let_go() { file_.reset(); }

    child_setup setup(std::chrono::milliseconds limit) const
    {
        return {.program = path, .arguments = {}, .environment = {}, .descriptors = {}, .exec_limit = limit};
    }

    const std::string path = fs::temp_directory_path() / ("coaccel-held-" + std::to_string(::getpid()));

private:
    void (*old_)(int);
    unique_fd file_;
    bool held_ = false;
};

/// The state of a process and its parent, as in /proc/PID/stat; '?' if there is no such process.
std::pair<char, pid_t> state_of(pid_t pid)
{
    const auto stat = text_of("/proc/" + std::to_string(pid) + "/stat");
    std::istringstream in(stat.substr(std::min(stat.rfind(')'), stat.size() - 1) + 1));
    std::pair<char, pid_t> found{'?', 0};
    in >> found.first >> found.second;
    return found;
}

/// A child of this process that has not executed its program yet.
std::optional<pid_t> find_unexecuted()
{
    std::error_code ignored;
    const auto own = fs::read_symlink("/proc/self/exe");
    for (const auto& entry : fs::directory_iterator("/proc")) {
        const int pid = std::atoi(entry.path().filename().c_str());
        if (pid > 0 && fs::read_symlink(entry.path() / "exe", ignored) == own && state_of(pid).second == ::getpid())
            return pid;
    }
    return std::nullopt;
}

} // namespace

TEST_SUITE_BEGIN("child_process");

TEST_CASE("the exit status and the signal are reported and remembered")
{
    auto seven = child_process::start(shell("exit 7")).value();
    CHECK(seven.wait() == end{false, 7});
    CHECK(seven.wait() == end{false, 7});
    CHECK(seven.ended() == end{false, 7});
    seven.kill();
    auto aborted = child_process::start(shell("kill -ABRT $$")).value();
    CHECK(aborted.wait() == end{true, SIGABRT});
}

TEST_CASE("a process runs until it is killed")
{
    auto child = child_process::start(sleeper).value();
    CHECK_FALSE(child.ended());
    child.kill();
    pollfd wait{child.pidfd(), POLLIN, 0};
    CHECK(::poll(&wait, 1, -1) == 1);
    CHECK(child.ended() == end{true, SIGKILL});
}

TEST_CASE("a process reaped by other code is reported as ended")
{
    auto child = child_process::start(shell("exit 3")).value();
    REQUIRE(::waitpid(child.pid(), nullptr, 0) == child.pid());
    // Only newer kernels still report the status.
    const auto how = child.ended();
    CHECK((how == end{false, 3} || how == end{false, -1}));
    CHECK(child.wait() == how);
    CHECK(child.kill());
}

TEST_CASE("the end of a process is detected while the program ignores SIGCHLD")
{
    auto* const old = std::signal(SIGCHLD, SIG_IGN);
    auto exits = child_process::start(shell("exit 3")).value();
    auto sleeps = child_process::start(sleeper).value();
    const auto status = exits.wait();
    sleeps.kill();
    const auto killed = sleeps.wait();
    std::signal(SIGCHLD, old);
    CHECK((status == end{false, 3} || status == end{false, -1}));
    CHECK((killed == end{true, SIGKILL} || killed == end{false, -1}));
}

TEST_CASE("a process outlives the thread that started it")
{
    std::optional<child_process> child;
    std::thread([&] { child.emplace(child_process::start(sleeper).value()); }).join();
    // Gives the kernel time to kill it, in case it did so at the end of that thread.
    auto other = child_process::start(shell("exit 0")).value();
    (void)other.wait();
    pollfd wait{child->pidfd(), POLLIN, 0};
    CHECK(::poll(&wait, 1, 50) == 0);
    CHECK_FALSE(child->ended());
}

TEST_CASE("a process has the given core dump limit and a raised OOM score")
{
    auto setup = shell("kill -STOP $$");
    setup.core = rlimit{1, 1};
    setup.oom_score_raise = 300;
    auto child = child_process::start(setup).value();
    siginfo_t info;
    REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WSTOPPED | WNOWAIT) == 0);
    const int here = std::stoi(text_of("/proc/self/oom_score_adj"));
    CHECK(std::stoi(text_of(proc(child) + "/oom_score_adj")) == std::min(here + 300, 1000));
    const auto limits = text_of(proc(child) + "/limits");
    const auto at = limits.find("Max core file size");
    REQUIRE(at != std::string::npos);
    std::istringstream line(limits.substr(at + std::string_view("Max core file size").size()));
    std::string soft, hard;
    line >> soft >> hard;
    CHECK(soft == "1");
    CHECK(hard == "1");
}

TEST_CASE("a process has the CPU affinity of the starting thread, or the given one")
{
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    if (CPU_COUNT(&all) < 2) {
        MESSAGE("not checked: there is one CPU");
        return;
    }
    // This thread, which may use all CPUs, creates the launcher.
    const auto keeps_launcher = child_process::start(sleeper).value();
    const auto cpus_of = [](const child_process& child) {
        cpu_set_t found;
        REQUIRE(::sched_getaffinity(child.pid(), sizeof found, &found) == 0);
        return found;
    };
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        auto given = sleeper;
        std::thread([&] {
            REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
            given.affinity = affinity_of_thread();
            const auto asked = cpus_of(child_process::start(sleeper).value());
            CHECK(CPU_EQUAL(&asked, &one));
        }).join();
        const auto told = cpus_of(child_process::start(given).value());
        CHECK(CPU_EQUAL(&told, &one));
    }
    const auto own = cpus_of(child_process::start(sleeper).value());
    CHECK(CPU_EQUAL(&own, &all));
}

TEST_CASE("arguments are passed unchanged, and standard error can be read to its end")
{
    auto setup = shell("for a in \"$0\" \"$@\"; do echo \"<$a>\" >&2; done; cat; echo unseen");
    setup.arguments.insert(setup.arguments.end(), {"a b", "$HOME", "", "*"});
    setup.environment = {"PATH=/bin:/usr/bin"};
    auto child = child_process::start(setup).value();
    const auto errors = child.take_errors();
    CHECK_FALSE(child.take_errors());
    CHECK(read_all(errors) == "<a b>\n<$HOME>\n<>\n<*>\n");
    CHECK(child.wait() == end{false, 0});
    CHECK((::fcntl(errors.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(errors.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(child.pidfd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("the environment of a process is exactly the given one")
{
    ::setenv("COACCEL_TEST_UNGIVEN", "1", 1);
    const auto child = stopped_shell({}, {"ONE=1", "TWO=a b"});
    ::unsetenv("COACCEL_TEST_UNGIVEN");
    using namespace std::string_literals;
    CHECK(text_of(proc(child) + "/environ") == "ONE=1\0TWO=a b\0"s);
}

TEST_CASE("the given descriptors are passed in order, and no others")
{
    std::vector<unique_fd> open;
    for (int i = 0; i < 5; ++i)
        open.emplace_back(::memfd_create(("number " + std::to_string(i)).c_str(), 0));
    std::vector<int> numbers;
    for (std::size_t i = 0; i < 40; ++i)
        numbers.push_back(open[4 - i % 5].get());
    const auto child = stopped_shell(numbers);
    std::vector<int> wanted;
    for (int i = 0; i < 3 + 40; ++i)
        wanted.push_back(i);
    CHECK(descriptors_of(std::to_string(child.pid())) == wanted);
    const auto target = [&](int i) { return fs::read_symlink(proc(child) + "/fd/" + std::to_string(i)).string(); };
    for (int i = 0; i < 40; ++i)
        CHECK(target(3 + i) == "/memfd:number " + std::to_string(4 - i % 5) + " (deleted)");
    CHECK(target(0) == "/dev/null");
    CHECK(target(1) == "/dev/null");
    CHECK(target(2).starts_with("pipe:"));
}

TEST_CASE("a child has its own process group and default signal settings")
{
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    auto* const old = std::signal(SIGUSR2, SIG_IGN);
    const auto child = stopped_shell();
    std::signal(SIGUSR2, old);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    CHECK(::getpgid(child.pid()) == child.pid());
    std::istringstream status(text_of(proc(child) + "/status"));
    int seen = 0;
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigBlk:") || line.starts_with("SigIgn:")) {
            // Above 31 are signals of the C library, which ignores them itself.
            CHECK((std::stoull(line.substr(8), nullptr, 16) & 0x7fffffff) == 0);
            ++seen;
        }
    CHECK(seen == 2);
}

TEST_CASE("a program that cannot be run is an error with its name and the reason")
{
    auto name = (fs::temp_directory_path() / "coaccel-XXXXXX").string();
    REQUIRE(unique_fd(::mkstemp(name.data())));
    std::ofstream(name) << "text\n";
    struct row {
        std::string program;
        ::mode_t mode;
        const char* why;
    };
    for (const auto& [program, mode, why] :
         {row{"/nonexistent/worker", 0600, "No such file"}, row{name, 0600, "Permission denied"},
          row{name, 0700, "Exec format error"}, row{"/bin/sh/worker", 0600, "Not a directory"}}) {
        ::chmod(name.c_str(), mode);
        const auto before = descriptors_of("self");
        const auto child =
            child_process::start({.program = program, .arguments = {}, .environment = {}, .descriptors = {}});
        CHECK(descriptors_of("self") == before);
        REQUIRE_FALSE(child);
        const auto message = child.error().message();
        CAPTURE(message);
        CHECK(child.error() == errc::worker_missing);
        CHECK(message.find(program) != std::string::npos);
        CHECK(message.find(why) != std::string::npos);
    }
    ::unlink(name.c_str());
    CHECK_FALSE(has_children());
}

TEST_CASE("a child whose execve hangs is killed, and others can be started")
{
    const auto before = descriptors_of("self");
    {
        const held_program held;
        if (!held)
            return;
        const auto began = std::chrono::steady_clock::now();
        const auto child = child_process::start(held.setup(std::chrono::milliseconds(200)));
        // Less than the kernel waits for the lease.
        CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(30));
        REQUIRE_FALSE(child);
        CHECK(child.error() == errc::start_failed);
        CHECK(child.error().message() == held.path + ": not executed within 200 ms, so the new process was killed");
        CHECK_FALSE(has_children());
    }
    CHECK(descriptors_of("self") == before);
    CHECK(child_process::start(shell("exit 4")).value().wait() == end{false, 4});
}

TEST_CASE("a child that is stopped before execve is killed, and others can be started")
{
    held_program held;
    if (!held)
        return;
    const auto setup = held.setup(std::chrono::seconds(2));
    auto stopped = std::async(std::launch::async, [&setup] { return child_process::start(setup); });
    std::optional<pid_t> caught;
    while (!caught && stopped.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
        caught = find_unexecuted();
    if (!caught) {
        MESSAGE("not checked: the child could not be caught");
        return;
    }
    if (::kill(*caught, SIGSTOP) != 0) {
        MESSAGE("not checked: this machine is so slow that the child was killed for its delay");
        return;
    }
    while (state_of(*caught).first != 'T' && state_of(*caught).first != '?')
        std::this_thread::yield();
    held.let_go();
    // It waits for its turn.
    auto other = std::async(std::launch::async, [] { return child_process::start(shell("exit 4")); });
    const bool ends = stopped.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    CHECK(ends);
    if (!ends)
        ::kill(*caught, SIGCONT);
    const auto child = stopped.get();
    REQUIRE_FALSE(child);
    CHECK(child.error() == errc::start_failed);
    CHECK(other.get().value().wait() == end{false, 4});
    CHECK_FALSE(has_children());
}

TEST_CASE("a descriptor that is not open is refused")
{
    auto setup = sleeper;
    setup.descriptors = {-1};
    const auto child = child_process::start(setup);
    REQUIRE_FALSE(child);
    CHECK(child.error() == errc::start_failed);
}

TEST_CASE("a start without enough descriptors fails cleanly at every point")
{
    rlimit before;
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const auto open = descriptors_of("self");
    // The listing uses one descriptor itself.
    const auto lowest = static_cast<rlim_t>(open.size() - 1);
    auto setup = sleeper;
    setup.descriptors = {2, 2};
    int failed = 0, started = 0;
    for (rlim_t limit = lowest; started == 0 && limit < lowest + 64; ++limit) {
        const rlimit low{limit, before.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
        {
            const auto child = child_process::start(setup);
            if (child)
                ++started;
            else if (child.error() == errc::out_of_memory)
                ++failed;
        }
        ::setrlimit(RLIMIT_NOFILE, &before);
        CHECK(failed + started == static_cast<int>(limit - lowest) + 1);
        CHECK(descriptors_of("self") == open);
        CHECK_FALSE(has_children());
    }
    CHECK(started == 1);
    CHECK(failed >= 8);
}

TEST_CASE("two hundred starts leave no descriptor and no zombie")
{
    const auto before = descriptors_of("self");
    for (int i = 0; i < 200; ++i) {
        auto child = child_process::start(i % 2 ? sleeper : shell("exit 0")).value();
        if (i % 3 == 0)
            child = child_process::start(sleeper).value();
        const auto errors = i % 5 == 0 ? child.take_errors() : unique_fd();
        auto moved = std::move(child);
        if (i % 7 == 0)
            moved.kill();
        if (i % 4 == 0)
            (void)moved.ended();
    }
    CHECK(descriptors_of("self") == before);
    CHECK_FALSE(has_children());
}

TEST_CASE("a forked child does not affect its parent's process")
{
    auto child = child_process::start(sleeper).value();
    const auto pid = ::fork();
    if (pid == 0) {
        child.kill();
        bool right = forked() && !child.ended() && child.wait() == end{false, -1};
        right = right && child_process::start(sleeper).error() == errc::start_failed;
        {
            const auto gone = std::move(child);
        }
        ::_exit(right ? 7 : 8);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
    CHECK_FALSE(child.ended());
    ::kill(child.pid(), SIGTERM);
    CHECK(child.wait() == end{true, SIGTERM});
}

TEST_SUITE_END();

} // namespace test_posix_child_process
