#include "worker/parent/received_memory.hpp"

#include "posix/sealed_memory.hpp"
#include "posix/shared_memory.hpp"

#include <doctest/doctest.h>

#include <array>
#include <fcntl.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace test_worker_received_memory {

namespace {

using namespace coaccel;
using coaccel::detail::unique_fd;
/// Read-only memory.
error_code check_received_memory(std::string_view backend, const unique_fd& descriptor, std::uint64_t size)
{
    return worker::check_received_memory(backend, descriptor, size, memory_access::read_only);
}

constexpr std::uint64_t bytes = 8192;

unique_fd opened(const char* path, int flags = O_RDONLY)
{
    unique_fd fd(::open(path, flags | O_CLOEXEC));
    REQUIRE(fd);
    return fd;
}

} // namespace

TEST_SUITE_BEGIN("received_memory");

TEST_CASE("memory of the host is sealed memory of the right size")
{
    const auto sealed = detail::sealed_memory::create(bytes, "test").value().seal(memory_access::read_only).value();
    CHECK_FALSE(check_received_memory("host", sealed, bytes));
    CHECK(check_received_memory("host", sealed, bytes + 1) == errc::invalid_argument);
    CHECK(worker::check_received_memory("host", sealed, bytes, memory_access::read_write) == errc::invalid_argument);
    CHECK(check_received_memory("host", opened("/dev/null"), bytes) == errc::invalid_argument);
}

TEST_CASE("memory of a GPU is not a file, directory, socket or pipe")
{
    // A driver returns one of these.
    CHECK_FALSE(check_received_memory("cuda", opened("/dev/null", O_RDWR), bytes));
    CHECK_FALSE(check_received_memory("cuda", unique_fd(::eventfd(0, EFD_CLOEXEC)), bytes));

    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const unique_fd pipe(ends[0]), pipe_end(ends[1]);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    const unique_fd socket(ends[0]), socket_end(ends[1]);
    const auto shared = detail::shared_memory::create(bytes, "test").value();
    const unique_fd memory(::fcntl(shared.fd(), F_DUPFD_CLOEXEC, 3));
    struct bad {
        const unique_fd& fd;
        const char* name;
    };
    const auto file = opened("/proc/self/exe"), folder = opened("/");
    for (const bad& b : {bad{file, "a file"}, bad{folder, "a directory"}, bad{pipe, "a pipe"}, bad{socket, "a socket"},
                         bad{memory, "a file"}}) {
        const auto ec = check_received_memory("cuda", b.fd, bytes);
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == "the descriptor is not one of GPU memory: it is " + std::string(b.name));
    }
    CHECK(check_received_memory("cuda", unique_fd(), bytes) == errc::invalid_argument);
}

TEST_CASE("other backends export nothing")
{
    CHECK(check_received_memory("other", opened("/dev/null"), bytes).message() ==
          "the other backend exports no memory");
}

TEST_SUITE_END();

} // namespace test_worker_received_memory
