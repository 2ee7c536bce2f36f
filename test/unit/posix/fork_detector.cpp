#include "posix/fork_detector.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace test_posix_fork_detector {

namespace {

using namespace coaccel::detail;

template <class F>
int in_forked_child(F f)
{
    const auto pid = ::fork();
    if (pid == 0)
        ::_exit(f());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_SUITE_BEGIN("fork_detector");

TEST_CASE("a forked child is detected as one, and its parent is not")
{
    watch_forks();
    watch_forks();
    CHECK_FALSE(forked());
    CHECK(in_forked_child([] { return forked() ? 7 : 8; }) == 7);
    CHECK_FALSE(forked());
}

TEST_CASE("a child of a forked child is detected too")
{
    watch_forks();
    CHECK(in_forked_child([] { return in_forked_child([] { return forked() ? 7 : 8; }); }) == 7);
}

TEST_SUITE_END();

} // namespace test_posix_fork_detector
