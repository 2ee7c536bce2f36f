#include "posix/sealed_memory.hpp"

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

namespace test_posix_sealed_memory {

namespace {

using namespace coaccel;
using detail::sealed_memory;
using detail::unique_fd;

constexpr std::size_t bytes = 3 * 4096 + 5;

sealed_memory made(char content = 'x')
{
    auto m = sealed_memory::create(bytes, "test-write-once");
    REQUIRE(m);
    std::memset(m.value().data(), content, bytes);
    return std::move(m).value();
}

unique_fd sealed_descriptor(char content = 'x')
{
    auto m = made(content);
    auto fd = m.seal(memory_access::read_only);
    REQUIRE(fd);
    return std::move(fd).value();
}

bool is_filled_with(const sealed_memory& m, char content)
{
    const auto* p = static_cast<const char*>(m.data());
    return m.size() == bytes && p[0] == content && p[bytes - 1] == content;
}

} // namespace

TEST_SUITE_BEGIN("sealed_memory");

TEST_CASE("memory is zero until it is written, and keeps its address and content when it is sealed")
{
    auto m = sealed_memory::create(bytes, "test-write-once");
    REQUIRE(m);
    CHECK(static_cast<const char*>(m.value().data())[bytes - 1] == 0);
    auto own = made();
    void* const before = own.data();
    CHECK_FALSE(own.sealed());
    auto fd = own.seal(memory_access::read_only);
    REQUIRE(fd);
    CHECK(own.sealed());
    CHECK(own.data() == before);
    CHECK(is_filled_with(own, 'x'));
    CHECK_FALSE(sealed_memory::check(fd.value(), bytes, memory_access::read_only));
}

TEST_CASE("sealed memory lives as long as its descriptor, and cannot be written by anyone")
{
    const auto fd = sealed_descriptor('y');
    const auto a = sealed_memory::open(fd, bytes, memory_access::read_only);
    const auto b = sealed_memory::open(fd, bytes, memory_access::read_only);
    REQUIRE(a);
    REQUIRE(b);
    CHECK(is_filled_with(a.value(), 'y'));
    CHECK(is_filled_with(b.value(), 'y'));
    CHECK(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0) == MAP_FAILED);
    CHECK(::write(fd.get(), "z", 1) < 0);
    CHECK(::ftruncate(fd.get(), 1) != 0);
    CHECK(is_filled_with(a.value(), 'y'));
}

TEST_CASE("memory that is sealed for writers is changed by all of them, and has its size for good")
{
    auto own = made('a');
    const auto fd = own.seal(memory_access::read_write);
    REQUIRE(fd);
    CHECK(own.sealed());
    auto other = sealed_memory::open(fd.value(), bytes, memory_access::read_write);
    REQUIRE(other);
    CHECK(is_filled_with(other.value(), 'a'));
    std::memset(other.value().data(), 'b', bytes);
    CHECK(is_filled_with(own, 'b'));
    std::memset(own.data(), 'c', bytes);
    CHECK(is_filled_with(other.value(), 'c'));
    CHECK(::ftruncate(fd.value().get(), 1) != 0);
    CHECK(::fcntl(fd.value().get(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("memory is accepted only with the access for which it was sealed")
{
    const auto constant = sealed_descriptor();
    auto m = made();
    const auto variable = std::move(m.seal(memory_access::read_write)).value();
    CHECK(sealed_memory::check(constant, bytes, memory_access::read_write) == errc::invalid_argument);
    CHECK(sealed_memory::check(variable, bytes, memory_access::read_only) == errc::invalid_argument);
    CHECK(sealed_memory::open(constant, bytes, memory_access::read_write).error() == errc::invalid_argument);
    CHECK(sealed_memory::open(variable, bytes, memory_access::read_only).error() == errc::invalid_argument);
    CHECK_FALSE(sealed_memory::check(variable, bytes, memory_access::read_write));
    CHECK(sealed_memory::check(variable, bytes - 1, memory_access::read_write) == errc::invalid_argument);

    // Its maker could still shorten it, or forbid writing.
    const unique_fd unsealed(::memfd_create("test-unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(unsealed.get(), bytes) == 0);
    CHECK(sealed_memory::check(unsealed, bytes, memory_access::read_write) == errc::invalid_argument);
    REQUIRE(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    CHECK(sealed_memory::check(unsealed, bytes, memory_access::read_write) == errc::invalid_argument);
}

TEST_CASE("a mapping lives as long as its object, without a descriptor")
{
    auto fd = sealed_descriptor('z');
    auto m = sealed_memory::open(fd, bytes, memory_access::read_only);
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
    CHECK(sealed_memory::check(good, bytes - 1, memory_access::read_only) == errc::invalid_argument);
    CHECK(sealed_memory::check(good, bytes + 1, memory_access::read_only) == errc::invalid_argument);
    CHECK(sealed_memory::open(good, bytes + 1, memory_access::read_only).error() == errc::invalid_argument);
    CHECK(sealed_memory::check(unique_fd(), bytes, memory_access::read_only) == errc::invalid_argument);

    // Its writer could still change or shorten it.
    const auto writable = detail::shared_memory::create(bytes, "test-shared").value();
    const unique_fd copy(::fcntl(writable.fd(), F_DUPFD_CLOEXEC, 3));
    CHECK(sealed_memory::check(copy, bytes, memory_access::read_only) == errc::invalid_argument);

    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const unique_fd in(ends[0]), out(ends[1]);
    CHECK(sealed_memory::check(in, bytes, memory_access::read_only) == errc::invalid_argument);
    CHECK(sealed_memory::check(in, 0, memory_access::read_only) == errc::invalid_argument);
    const unique_fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    CHECK(sealed_memory::check(file, bytes, memory_access::read_only) == errc::invalid_argument);
    const unique_fd folder(::open("/", O_RDONLY | O_CLOEXEC));
    CHECK(sealed_memory::check(folder, bytes, memory_access::read_only) == errc::invalid_argument);
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
    const auto fd = m.seal(memory_access::read_only);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    REQUIRE_FALSE(fd);
    CHECK(fd.error() == errc::out_of_memory);
    CHECK_FALSE(m.sealed());
    std::memset(m.data(), 'w', bytes);
    CHECK(is_filled_with(m, 'w'));
    CHECK(m.seal(memory_access::read_only));
}

TEST_CASE("impossible sizes and a lack of descriptors are errors")
{
    CHECK(sealed_memory::create(0, "test").error() == errc::out_of_memory);
    CHECK(sealed_memory::create(~std::size_t(0), "test").error() == errc::out_of_memory);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto m = sealed_memory::create(bytes, "test");
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE_FALSE(m);
    CHECK(m.error() == errc::out_of_memory);
}

TEST_SUITE_END();

} // namespace test_posix_sealed_memory
