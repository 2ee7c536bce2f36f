#include "posix/unique_fd.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"
#include "worker/process/find_program.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace test_integration_rights {

namespace {

namespace fs = std::filesystem;
using coaccel::detail::unique_fd;

constexpr ::uid_t nobody = 65534;

/// A run of the rights program, which is built beside this test.
class run {
public:
    run(const std::string& program, const char* what, ::uid_t user, std::vector<const char*> environment = {})
    {
        const auto found = coaccel::worker::find_program(nullptr);
        REQUIRE(found);
        environment.push_back(nullptr);
        const char* const arguments[] = {program.c_str(), what, found.value().c_str(), nullptr};
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        out_.reset(ends[0]);
        const unique_fd in(ends[1]);
        pid_ = ::fork();
        if (pid_ == 0) {
            if (::dup2(in.get(), 1) == 1 && ::setresuid(user, user, user) == 0)
                ::execve(program.c_str(), const_cast<char* const*>(arguments),
                         const_cast<char* const*>(environment.data()));
            ::_exit(100);
        }
    }
    run(const run&) = delete;
    run& operator=(const run&) = delete;
    ~run() { (void)end(SIGKILL); }

    std::string line()
    {
        std::string text;
        for (char c = 0; ::read(out_.get(), &c, 1) == 1 && c != '\n';)
            text += c;
        return text;
    }

    std::string rest()
    {
        std::string all;
        char bytes[512];
        for (ssize_t n; (n = ::read(out_.get(), bytes, sizeof bytes)) > 0;)
            all.append(bytes, static_cast<std::size_t>(n));
        return all;
    }

    /// The exit status, or -1 if a signal ended the process.
    int end(int signal = 0)
    {
        if (pid_ <= 0)
            return status_;
        if (signal != 0)
            ::kill(pid_, signal);
        int status = 0;
        ::waitpid(std::exchange(pid_, -1), &status, 0);
        return status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    unique_fd out_;
    pid_t pid_ = -1;
    int status_ = -1;
};

constexpr const char* rights_program = COACCEL_TEST_RIGHTS_PROGRAM;

} // namespace

TEST_SUITE_BEGIN("isolated rights");

TEST_CASE("a set-uid program passes no environment variables of its user to its workers" *
          doctest::skip(test::thread_sanitized))
{
    const test::temporary_folder folder;
    struct statvfs where{};
    if (::geteuid() != 0 || ::statvfs(folder.path().c_str(), &where) != 0 || (where.f_flag & ST_NOSUID) != 0) {
        MESSAGE("not checked: this needs root, and a temporary folder where set-uid programs work");
        return;
    }
    const auto program = folder / "program";
    fs::copy_file(rights_program, program);
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    REQUIRE(::chmod(program.c_str(), 04755) == 0);
    run r(program, "environment", nobody,
          {"PATH=/evil", "HOME=/evil", "LD_LIBRARY_PATH=/evil", "COACCEL_LIBCUDA=/evil.so",
           "COACCEL_WORKER=/evil/worker", "CUDA_HOME=/evil", "NVIDIA_EVIL=1", "TMPDIR=/evil"});
    const auto printed = r.rest();
    if (printed == "not elevated\n") {
        MESSAGE("not checked: set-uid programs get no rights here");
        return;
    }
    CHECK(printed == "started\n");
    CHECK(r.end() == 0);
}

TEST_CASE("a process that has dropped its rights can still end its workers")
{
    if (::geteuid() != 0) {
        MESSAGE("not checked: this needs root");
        return;
    }
    run r(rights_program, "drop", 0);
    CHECK(r.rest() == "gone\nsoon\n");
    CHECK(r.end() == 0);
}

TEST_CASE("a stopped worker ends with its parent where a subreaper adopts it")
{
    REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    {
        run r(rights_program, "wait", ::geteuid());
        const pid_t worker = std::stoi(r.line());
        const unique_fd process(static_cast<int>(::syscall(SYS_pidfd_open, worker, 0)));
        REQUIRE(process);
        REQUIRE(::kill(worker, SIGSTOP) == 0);
        CHECK(r.end(SIGKILL) == -1);
        pollfd end{process.get(), POLLIN, 0};
        const bool ended = ::poll(&end, 1, 10'000) == 1;
        CHECK(ended);
        if (!ended)
            ::kill(worker, SIGKILL);
        // This process has adopted it.
        int status = 0;
        CHECK(::waitpid(worker, &status, 0) == worker);
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_SUITE_END();

} // namespace test_integration_rights
