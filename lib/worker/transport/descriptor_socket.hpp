#ifndef COACCEL_WORKER_TRANSPORT_DESCRIPTOR_SOCKET_HPP
#define COACCEL_WORKER_TRANSPORT_DESCRIPTOR_SOCKET_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <cstdint>
#include <utility>

namespace coaccel::worker {

/// One end of a socket that passes descriptors between a parent and its worker. Each message has one descriptor and the
/// number of the request that it belongs to, which travels through a ring. No function blocks.
class COACCEL_DECL descriptor_socket {
public:
    /// Both ends. Errors: errc::out_of_memory if no descriptors are left.
    static result<std::pair<descriptor_socket, descriptor_socket>> create();

    /// An end that this process has inherited.
    explicit descriptor_socket(detail::unique_fd fd) noexcept : fd_(std::move(fd)) {}

    int fd() const noexcept { return fd_.get(); }

    /// The receiver gets its own copy of the descriptor. Errors: errc::out_of_memory if it cannot be sent.
    error_code send(std::uint64_t number, int descriptor) noexcept;

    /// The descriptor of this request, which the peer has sent before it wrote the record about it.
    ///
    /// Errors: errc::out_of_memory if this process has no descriptor left, and the message is gone;
    /// errc::worker_corrupted if there is no message, or one of another request, or one with more or fewer descriptors.
    result<detail::unique_fd> receive(std::uint64_t number);

    /// Whether no message waits to be received.
    bool empty() const noexcept;

private:
    detail::unique_fd fd_;
};

} // namespace coaccel::worker

#endif
