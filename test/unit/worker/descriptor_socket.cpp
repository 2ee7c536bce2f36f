#include "worker/transport/descriptor_socket.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace test_worker_descriptor_socket {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::unique_fd;

std::size_t descriptors_of_process()
{
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// A message as only a faulty peer would send it.
void send_raw(int socket, std::span<const char> data, const std::vector<int>& descriptors)
{
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    iovec part{const_cast<char*>(data.data()), data.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
    }
    REQUIRE(::sendmsg(socket, &message, MSG_NOSIGNAL) == ssize_t(data.size()));
}

std::array<char, 8> number(std::uint64_t n)
{
    std::array<char, 8> bytes{};
    std::memcpy(bytes.data(), &n, sizeof(n));
    return bytes;
}

struct fixture {
    ino_t inode(int fd) const
    {
        struct stat s{};
        REQUIRE(::fstat(fd, &s) == 0);
        return s.st_ino;
    }

    std::pair<descriptor_socket, descriptor_socket> both = descriptor_socket::create().value();
    descriptor_socket& here = both.first;
    descriptor_socket& peer = both.second;
    unique_fd file{::memfd_create("test", MFD_CLOEXEC)};
};

} // namespace

TEST_SUITE_BEGIN("descriptor_socket");

TEST_CASE_FIXTURE(fixture, "descriptors arrive in order, each with its number")
{
    const unique_fd other(::memfd_create("other", MFD_CLOEXEC));
    CHECK(here.empty());
    REQUIRE_FALSE(peer.send(7, file.get()));
    REQUIRE_FALSE(peer.send(8, other.get()));
    CHECK_FALSE(here.empty());
    const auto first = here.receive(7);
    REQUIRE(first);
    CHECK(inode(first.value().get()) == inode(file.get()));
    CHECK((::fcntl(first.value().get(), F_GETFD) & FD_CLOEXEC) != 0);
    const auto second = here.receive(8);
    REQUIRE(second);
    CHECK(inode(second.value().get()) == inode(other.get()));
    CHECK(here.empty());
    // The other way.
    REQUIRE_FALSE(here.send(1, file.get()));
    CHECK(peer.receive(1));
}

TEST_CASE("a message that is not one descriptor with this number is refused, and nothing is left")
{
    struct bad {
        const char* name;
        std::vector<char> data;
        std::size_t descriptors;
    };
    const auto five = number(5), six = number(6);
    const std::vector<char> right(five.begin(), five.end()), other(six.begin(), six.end());
    std::vector<char> longer = right;
    longer.push_back(0);
    const std::vector<char> shorter(right.begin(), right.end() - 1);
    for (const bad& b : {bad{"no descriptor", right, 0}, bad{"two descriptors", right, 2},
                         bad{"as many as the kernel takes", right, 253}, bad{"another number", other, 1},
                         bad{"too long", longer, 1}, bad{"too short", shorter, 1}}) {
        CAPTURE(b.name);
        fixture f;
        send_raw(f.peer.fd(), b.data, std::vector<int>(b.descriptors, f.file.get()));
        const auto before = descriptors_of_process();
        const auto got = f.here.receive(5);
        REQUIRE_FALSE(got);
        CHECK(errc_of(got.error()) == errc::worker_corrupted);
        CHECK(descriptors_of_process() == before);
        CHECK(f.here.empty());
    }
}

TEST_CASE_FIXTURE(fixture, "without a message there is no descriptor")
{
    CHECK(errc_of(here.receive(1).error()) == errc::worker_corrupted);
    peer = descriptor_socket(unique_fd());
    CHECK(errc_of(here.receive(1).error()) == errc::worker_corrupted);
    CHECK(errc_of(here.send(1, file.get())) == errc::out_of_memory);
}

TEST_CASE_FIXTURE(fixture, "a process without free descriptors does not blame its peer")
{
    REQUIRE_FALSE(peer.send(3, file.get()));
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto got = here.receive(3);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE_FALSE(got);
    CHECK(errc_of(got.error()) == errc::out_of_memory);
    CHECK(here.empty());
    REQUIRE_FALSE(peer.send(4, file.get()));
    CHECK(here.receive(4));
}

TEST_CASE_FIXTURE(fixture, "sending to a peer that does not read does not block")
{
    std::uint64_t sent = 0;
    error_code ec;
    while (!(ec = peer.send(sent, file.get())) && sent < 100000)
        ++sent;
    CHECK(errc_of(ec) == errc::out_of_memory);
    REQUIRE(sent > 0);
    for (std::uint64_t i = 0; i < sent; ++i)
        REQUIRE(here.receive(i));
    CHECK(here.empty());
}

TEST_SUITE_END();

} // namespace test_worker_descriptor_socket
