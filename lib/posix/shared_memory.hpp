#ifndef COACCEL_POSIX_SHARED_MEMORY_HPP
#define COACCEL_POSIX_SHARED_MEMORY_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace coaccel::detail {

/// Memory shared by two processes, of a size that neither can change. It has no name in any file system: only a process
/// that received the descriptor can access it.
class COACCEL_DECL shared_memory {
public:
    /// Creates zeroed memory. `label` appears in the memory maps of the processes and in messages.
    ///
    /// Errors: errc::invalid_option for a size of zero or one larger than any address space; errc::out_of_memory.
    static result<shared_memory> create(std::size_t bytes, const char* label);

    /// Maps memory that a peer created. Errors: errc::worker_corrupted if it does not have that size or could be
    /// resized.
    static result<shared_memory> adopt(unique_fd fd, std::size_t bytes);

    shared_memory(shared_memory&& other) noexcept;
    shared_memory& operator=(shared_memory&& other) noexcept;
    ~shared_memory() { unmap(); }

    std::span<std::byte> bytes() const noexcept { return bytes_; }
    int fd() const noexcept { return fd_.get(); }

private:
    shared_memory(unique_fd fd, std::span<std::byte> bytes) noexcept : fd_(std::move(fd)), bytes_(bytes) {}
    void unmap() noexcept;

    unique_fd fd_;
    std::span<std::byte> bytes_;
};

} // namespace coaccel::detail

#endif
