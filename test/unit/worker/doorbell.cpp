#include "worker/transport/doorbell.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace test_worker_doorbell {

namespace {

using namespace std::chrono_literals;
using coaccel::errc;
using coaccel::detail::unique_fd;
using coaccel::worker::doorbell;

constexpr auto long_enough = 60s;

} // namespace

TEST_SUITE_BEGIN("doorbell");

TEST_CASE("the doorbell stays signaled until a wait or a clear")
{
    auto bell = doorbell::create().value();
    CHECK_FALSE(bell.wait(0ns));
    bell.ring();
    bell.ring();
    CHECK(bell.wait(0ns));
    CHECK_FALSE(bell.wait(0ns));
    bell.ring();
    bell.clear();
    CHECK_FALSE(bell.wait(0ns));
    bell.clear();
    CHECK_FALSE(bell.wait(std::chrono::nanoseconds::min()));
}

TEST_CASE("ringing works while the pipe is full")
{
    auto bell = doorbell::create().value();
    const std::string many(1 << 16, 'x');
    while (::write(bell.ring_fd(), many.data(), many.size()) > 0) {
    }
    REQUIRE(errno == EAGAIN);
    bell.ring();
    CHECK(bell.wait(0ns));
    CHECK_FALSE(bell.wait(0ns));
    bell.ring();
    CHECK(bell.wait(0ns));
}

TEST_CASE("a wait without a ring lasts until its timeout")
{
    auto bell = doorbell::create().value();
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(bell.wait(20ms));
    CHECK(std::chrono::steady_clock::now() - begin >= 20ms);
}

TEST_CASE("another thread wakes a waiting thread")
{
    auto bell = doorbell::create().value();
    std::thread other([&] { bell.ring(); });
    CHECK(bell.wait(std::chrono::nanoseconds::max()));
    other.join();
}

TEST_CASE("another process wakes a waiting thread through a duplicated descriptor")
{
    auto bell = doorbell::create().value();
    CHECK(::fcntl(bell.wait_fd(), F_GETFD) == FD_CLOEXEC);
    CHECK(::fcntl(bell.ring_fd(), F_GETFD) == FD_CLOEXEC);
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        auto theirs = doorbell::adopt_ring(unique_fd(::dup(bell.ring_fd())));
        theirs.ring();
        ::_exit(0);
    }
    CHECK(bell.wait(long_enough));
    CHECK(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE("an interrupt wakes the current or the next wait")
{
    auto bell = doorbell::create().value();
    bell.interrupt();
    bell.interrupt();
    bell.clear();
    CHECK(bell.wait(0ns));
    CHECK_FALSE(bell.wait(0ns));
    auto theirs = doorbell::adopt_wait(unique_fd(::dup(bell.wait_fd())));
    std::thread other([&] { theirs.interrupt(); });
    CHECK(theirs.wait(long_enough));
    other.join();
    // An interruption does not ring the doorbell.
    CHECK_FALSE(bell.wait(0ns));
}

TEST_CASE("no call blocks when the other process makes its descriptors blocking")
{
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // SIGALRM ends a child that blocks.
        ::alarm(10);
        auto to_worker = doorbell::create().value();
        auto to_parent = doorbell::create().value();
        for (const int theirs : {::dup(to_worker.wait_fd()), ::dup(to_parent.ring_fd())})
            if (::fcntl(theirs, F_SETFL, 0) != 0)
                ::_exit(1);
        if ((::fcntl(to_worker.wait_fd(), F_GETFL) & O_NONBLOCK) != 0)
            ::_exit(2);
        for (int i = 0; i < 100'000; ++i)
            to_worker.ring();
        to_parent.clear();
        if (to_parent.wait(0ns))
            ::_exit(3);
        to_parent.interrupt();
        ::_exit(to_parent.wait(0ns) ? 0 : 4);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a descriptor closed by the other process causes neither SIGPIPE nor a ring")
{
    auto to_worker = doorbell::create().value();
    auto to_parent = doorbell::create().value();
    {
        const unique_fd theirs(::dup(to_worker.wait_fd())), theirs_too(::dup(to_parent.ring_fd()));
    }
    to_worker.ring();
    CHECK_FALSE(to_parent.wait(0ns));
}

TEST_CASE("signals do not end the wait")
{
    static std::atomic<int> handled = 0;
    handled = 0;
    struct sigaction act = {};
    struct sigaction before = {};
    act.sa_handler = [](int) { ++handled; };
    REQUIRE(::sigaction(SIGUSR1, &act, &before) == 0);
    auto bell = doorbell::create().value();
    std::atomic<bool> over = false;
    bool rang = true;
    const auto begin = std::chrono::steady_clock::now();
    std::thread sleeper([&] {
        rang = bell.wait(50ms);
        over = true;
    });
    while (!over) {
        ::pthread_kill(sleeper.native_handle(), SIGUSR1);
        std::this_thread::yield();
    }
    sleeper.join();
    CHECK_FALSE(rang);
    CHECK(handled > 0);
    CHECK(std::chrono::steady_clock::now() - begin >= 50ms);
    REQUIRE(::sigaction(SIGUSR1, &before, nullptr) == 0);
}

TEST_CASE("one ring wakes one of two waiting threads")
{
    auto bell = doorbell::create().value();
    for (int i = 0; i < 200; ++i) {
        std::atomic<int> rang = 0;
        const auto sleep = [&] { rang += bell.wait(long_enough) ? 1 : 100; };
        std::thread a(sleep);
        std::thread b(sleep);
        bell.ring();
        while (rang == 0)
            std::this_thread::yield();
        bell.ring();
        a.join();
        b.join();
        REQUIRE(rang == 2);
    }
}

TEST_CASE("running out of descriptors is a specific error")
{
    // The sanitizer needs descriptors when it sees a class for the first time.
    (void)coaccel::make_error_with_message(errc::out_of_memory, std::generic_category().message(EMFILE));
    rlimit before = {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto made = doorbell::create();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(made.has_error());
    CHECK(made.error() == errc::out_of_memory);
    CHECK(made.error().message().find("no descriptors left") != std::string::npos);
}

TEST_CASE("a wait on an invalid descriptor fails")
{
    auto nothing = doorbell::adopt_ring(unique_fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 1 << 30)));
    CHECK(nothing.wait_fd() == -1);
    nothing.ring();
    nothing.clear();
    CHECK_FALSE(nothing.wait(1ms));
}

TEST_SUITE_END();

} // namespace test_worker_doorbell
