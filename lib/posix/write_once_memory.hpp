#ifndef COACCEL_POSIX_WRITE_ONCE_MEMORY_HPP
#define COACCEL_POSIX_WRITE_ONCE_MEMORY_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <cstddef>

namespace coaccel::detail {

/// Memory that one process fills and then seals. From then on no process can change it, and every process that has its
/// descriptor can map it read-only: a stray write there is a fault of the writer. It is freed when no descriptor and no
/// mapping of it is left.
class COACCEL_DECL write_once_memory {
public:
    /// Creates zeroed memory that can be written. `label` appears in the memory maps of the processes and in messages.
    ///
    /// Errors: errc::out_of_memory, also if no descriptor is left.
    static result<write_once_memory> create(std::size_t bytes, const char* label);

    /// Maps sealed memory read-only. Errors: those of `check`, or errc::out_of_memory.
    static result<write_once_memory> open(const unique_fd& fd, std::size_t bytes);

    /// Whether the descriptor is that of sealed memory of this size. Errors: errc::invalid_argument, with the reason.
    static error_code check(const unique_fd& fd, std::size_t bytes);

    write_once_memory(write_once_memory&& other) noexcept;
    write_once_memory& operator=(write_once_memory&& other) noexcept;
    ~write_once_memory() { unmap(); }

    /// Makes the memory read-only at its address, and gives up its descriptor. If this fails, the memory can still be
    /// written; if it can no longer be used at all, the error is errc::context_lost.
    ///
    /// Preconditions: not sealed; no other thread accesses the memory meanwhile.
    result<unique_fd> seal();
    bool sealed() const noexcept { return !fd_; }

    void* data() const noexcept { return memory_; }
    std::size_t size() const noexcept { return bytes_; }

private:
    write_once_memory(unique_fd fd, void* memory, std::size_t bytes) noexcept
        : fd_(std::move(fd)), memory_(memory), bytes_(bytes)
    {}
    void unmap() noexcept;

    /// Empty if the memory is sealed.
    unique_fd fd_;
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace coaccel::detail

#endif
