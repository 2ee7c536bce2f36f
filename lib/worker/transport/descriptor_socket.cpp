#include "worker/transport/descriptor_socket.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <vector>

namespace coaccel::worker {
namespace {

// The most descriptors that the kernel passes in one message. With room for all of them, a truncated message means that
// this process has no descriptor left.
constexpr std::size_t most_descriptors = 253;

error_code no_descriptors(const char* what, int reason)
{
    return make_error_with_message(errc::out_of_memory,
                                   std::string(what) + ": " + std::generic_category().message(reason));
}

error_code corrupted(const std::string& why)
{
    return make_error_with_message(errc::worker_corrupted, why);
}

std::vector<detail::unique_fd> take_descriptors(msghdr& message)
{
    std::vector<detail::unique_fd> all;
    all.reserve(most_descriptors);
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            all.emplace_back(fd);
        }
    }
    return all;
}

} // namespace

result<std::pair<descriptor_socket, descriptor_socket>> descriptor_socket::create()
{
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
        return no_descriptors("no socket for a worker", errno);
    auto first = detail::above_standard(ends[0]);
    const int reason = errno;
    auto second = detail::above_standard(ends[1]);
    if (!first || !second)
        return no_descriptors("no socket for a worker", first ? errno : reason);
    return std::pair(descriptor_socket(std::move(first)), descriptor_socket(std::move(second)));
}

error_code descriptor_socket::send(std::uint64_t number, int descriptor) noexcept
{
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec data{&number, sizeof(number)};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
    const auto sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(sizeof(number)) ? error_code()
                                                        : no_descriptors("a descriptor cannot be sent", errno);
}

result<detail::unique_fd> descriptor_socket::receive(std::uint64_t number)
{
    alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
    std::uint64_t got = 0;
    iovec data{&got, sizeof(got)};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto size = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0)
        return corrupted("no descriptor was sent");
    // Owned first, so that every one of them is closed whatever is wrong with the message.
    auto all = take_descriptors(message);
    if (size != static_cast<ssize_t>(sizeof(got)) || (message.msg_flags & MSG_TRUNC) != 0)
        return corrupted("the message with a descriptor has another size");
    if (got != number)
        return corrupted("the descriptor of request " + std::to_string(got) + " instead of " + std::to_string(number));
    if (all.size() <= 1 && (message.msg_flags & MSG_CTRUNC) != 0)
        return no_descriptors("a descriptor cannot be received", EMFILE);
    if (all.size() != 1)
        return corrupted(std::to_string(all.size()) + " descriptors instead of one");
    // A program that was started without standard streams must not write its messages to this file.
    auto made = detail::above_standard(all.front().release());
    if (!made)
        return no_descriptors("a descriptor cannot be received", errno);
    return made;
}

bool descriptor_socket::empty() const noexcept
{
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

} // namespace coaccel::worker
