#include "posix/write_once_memory.hpp"

#include "posix/shared_memory.hpp"

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace test_posix_write_once_memory {

namespace {

using namespace coaccel;
using detail::unique_fd;
using detail::write_once_memory;

constexpr std::size_t bytes = 3 * 4096 + 5;

write_once_memory made(char content = 'x')
{
    auto m = write_once_memory::create(bytes, "test-write-once");
    REQUIRE(m);
    std::memset(m.value().data(), content, bytes);
    return std::move(m).value();
}

unique_fd sealed_descriptor(char content = 'x')
{
    auto m = made(content);
    auto fd = m.seal();
    REQUIRE(fd);
    return std::move(fd).value();
}

bool is_filled_with(const write_once_memory& m, char content)
{
    const auto* p = static_cast<const char*>(m.data());
    return m.size() == bytes && p[0] == content && p[bytes - 1] == content;
}

} // namespace

TEST_SUITE_BEGIN("write_once_memory");

TEST_CASE("memory is zero until it is written, and keeps its address and content when it is sealed")
{
    auto m = write_once_memory::create(bytes, "test-write-once");
    REQUIRE(m);
    CHECK(static_cast<const char*>(m.value().data())[bytes - 1] == 0);
    auto own = made();
    void* const before = own.data();
    CHECK_FALSE(own.sealed());
    auto fd = own.seal();
    REQUIRE(fd);
    CHECK(own.sealed());
    CHECK(own.data() == before);
    CHECK(is_filled_with(own, 'x'));
    CHECK_FALSE(write_once_memory::check(fd.value(), bytes));
}

TEST_CASE("sealed memory lives as long as its descriptor, and cannot be written by anyone")
{
    const auto fd = sealed_descriptor('y');
    const auto a = write_once_memory::open(fd, bytes);
    const auto b = write_once_memory::open(fd, bytes);
    REQUIRE(a);
    REQUIRE(b);
    CHECK(is_filled_with(a.value(), 'y'));
    CHECK(is_filled_with(b.value(), 'y'));
    CHECK(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0) == MAP_FAILED);
    CHECK(::write(fd.get(), "z", 1) < 0);
    CHECK(::ftruncate(fd.get(), 1) != 0);
    CHECK(is_filled_with(a.value(), 'y'));
}

TEST_CASE("a mapping lives as long as its object, without a descriptor")
{
    auto fd = sealed_descriptor('z');
    auto m = write_once_memory::open(fd, bytes);
    REQUIRE(m);
    fd.reset();
    auto moved = std::move(m).value();
    CHECK(is_filled_with(moved, 'z'));
    moved = made('q');
    CHECK(is_filled_with(moved, 'q'));
}

TEST_CASE("only sealed memory of the right size is accepted")
{
    const auto good = sealed_descriptor();
    CHECK(write_once_memory::check(good, bytes - 1) == errc::invalid_argument);
    CHECK(write_once_memory::check(good, bytes + 1) == errc::invalid_argument);
    CHECK(write_once_memory::open(good, bytes + 1).error() == errc::invalid_argument);
    CHECK(write_once_memory::check(unique_fd(), bytes) == errc::invalid_argument);

    // Its writer could still change or shorten it.
    const auto writable = detail::shared_memory::create(bytes, "test-shared").value();
    const unique_fd copy(::fcntl(writable.fd(), F_DUPFD_CLOEXEC, 3));
    CHECK(write_once_memory::check(copy, bytes) == errc::invalid_argument);

    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const unique_fd in(ends[0]), out(ends[1]);
    CHECK(write_once_memory::check(in, bytes) == errc::invalid_argument);
    CHECK(write_once_memory::check(in, 0) == errc::invalid_argument);
    const unique_fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    CHECK(write_once_memory::check(file, bytes) == errc::invalid_argument);
    const unique_fd folder(::open("/", O_RDONLY | O_CLOEXEC));
    CHECK(write_once_memory::check(folder, bytes) == errc::invalid_argument);
}

TEST_CASE("memory that is still mapped writable elsewhere is not sealed, and stays usable")
{
    auto m = made();
    // A forked child has a copy of the mapping.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    const auto fd = m.seal();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    REQUIRE_FALSE(fd);
    CHECK(fd.error() == errc::out_of_memory);
    CHECK_FALSE(m.sealed());
    std::memset(m.data(), 'w', bytes);
    CHECK(is_filled_with(m, 'w'));
    CHECK(m.seal());
}

TEST_CASE("impossible sizes and a lack of descriptors are errors")
{
    CHECK(write_once_memory::create(0, "test").error() == errc::out_of_memory);
    CHECK(write_once_memory::create(~std::size_t(0), "test").error() == errc::out_of_memory);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto m = write_once_memory::create(bytes, "test");
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE_FALSE(m);
    CHECK(m.error() == errc::out_of_memory);
}

TEST_SUITE_END();

} // namespace test_posix_write_once_memory
