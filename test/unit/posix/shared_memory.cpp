#include "posix/shared_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace test_posix_shared_memory {

namespace {

using coaccel::errc;
using coaccel::detail::shared_memory;
using coaccel::detail::unique_fd;

constexpr std::size_t size = 3 * 4096;

unique_fd copy_of(int fd)
{
    return unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

unique_fd memory(std::size_t bytes, int seals)
{
    unique_fd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(fd);
    REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
    REQUIRE(::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
    return fd;
}

bool is_open(int fd)
{
    return ::fcntl(fd, F_GETFD) >= 0;
}

} // namespace

TEST_SUITE_BEGIN("shared_memory");

TEST_CASE("a new area is zeroed, sealed, and closed on exec")
{
    auto made = shared_memory::create(size, "test").value();
    CHECK(made.bytes().size() == size);
    CHECK(std::ranges::all_of(made.bytes(), [](std::byte b) { return b == std::byte(0); }));
    CHECK(::fcntl(made.fd(), F_GETFD) == FD_CLOEXEC);
    CHECK(::ftruncate(made.fd(), 4096) != 0);
    CHECK(::ftruncate(made.fd(), 2 * size) != 0);
    CHECK(::fcntl(made.fd(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("an adopted area is the same memory")
{
    auto made = shared_memory::create(size, "test").value();
    auto adopted = shared_memory::adopt(copy_of(made.fd()), size).value();
    REQUIRE(adopted.bytes().data() != made.bytes().data());
    made.bytes()[size - 1] = std::byte(7);
    CHECK(adopted.bytes()[size - 1] == std::byte(7));
    adopted.bytes()[0] = std::byte(9);
    CHECK(made.bytes()[0] == std::byte(9));
}

TEST_CASE("writes of another process are visible")
{
    auto made = shared_memory::create(size, "test").value();
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::memcpy(made.bytes().data(), "hello", 5);
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(std::memcmp(made.bytes().data(), "hello", 5) == 0);
}

TEST_CASE("impossible sizes are refused")
{
    CHECK(shared_memory::create(0, "test").error() == errc::invalid_option);
    CHECK(shared_memory::create(std::numeric_limits<std::size_t>::max(), "test").error() == errc::invalid_option);
    const auto large = shared_memory::create(std::size_t(1) << 60, "test");
    REQUIRE(large.has_error());
    CHECK(large.error() == errc::out_of_memory);
    CHECK(large.error().message().find("staging larger than the memory of this machine") != std::string::npos);
}

TEST_CASE("an error for lack of descriptors names the label, the size and the reason")
{
    // The sanitizer needs descriptors when it sees a class for the first time.
    (void)coaccel::make_error_with_message(errc::out_of_memory, std::generic_category().message(EMFILE));
    rlimit before = {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto made = shared_memory::create(size, "some label");
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(made.has_error());
    CHECK(made.error() == errc::out_of_memory);
    const auto text = made.error().message();
    CHECK(text.find("some label") != std::string::npos);
    CHECK(text.find(std::to_string(size)) != std::string::npos);
    CHECK(text.find("Too many open files") != std::string::npos);
}

TEST_CASE("only sealed memory of the right size is adopted")
{
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    CHECK(shared_memory::adopt(memory(size, seals), size).has_value());
    CHECK(shared_memory::adopt(memory(size, seals), size - 4096).error() == errc::worker_corrupted);
    CHECK(shared_memory::adopt(memory(size, seals), size + 1).error() == errc::worker_corrupted);
    CHECK(shared_memory::adopt(memory(size, seals), 0).error() == errc::worker_corrupted);
    CHECK(shared_memory::adopt(memory(size, seals), std::numeric_limits<std::size_t>::max()).error() ==
          errc::worker_corrupted);
    for (const int missing : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL})
        CHECK(shared_memory::adopt(memory(size, seals & ~missing), size).error() == errc::worker_corrupted);
    CHECK(shared_memory::adopt(memory(size, seals | F_SEAL_WRITE), size).error() == errc::worker_corrupted);
}

TEST_CASE("a descriptor that is not shared memory is refused")
{
    CHECK(shared_memory::adopt(unique_fd(), size).error() == errc::worker_corrupted);
    int ends[2] = {};
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const unique_fd other(ends[1]);
    CHECK(shared_memory::adopt(unique_fd(ends[0]), size).error() == errc::worker_corrupted);
    CHECK_FALSE(is_open(ends[0]));
}

TEST_CASE("a move transfers the mapping and the descriptor")
{
    auto first = shared_memory::create(size, "test").value();
    const int fd = first.fd();
    auto* const memory = first.bytes().data();
    shared_memory second(std::move(first));
    CHECK(first.bytes().empty());
    CHECK(first.fd() == -1);
    CHECK(second.bytes().data() == memory);
    auto third = shared_memory::create(4096, "test").value();
    const int replaced = third.fd();
    third = std::move(second);
    CHECK_FALSE(is_open(replaced));
    CHECK(third.fd() == fd);
    CHECK(third.bytes().data() == memory);
    third.bytes()[size - 1] = std::byte(1);
    {
        const auto last = std::move(third);
        CHECK(is_open(fd));
    }
    CHECK_FALSE(is_open(fd));
}

TEST_SUITE_END();

} // namespace test_posix_shared_memory
