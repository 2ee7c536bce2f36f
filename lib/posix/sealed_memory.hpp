#ifndef COACCEL_POSIX_SEALED_MEMORY_HPP
#define COACCEL_POSIX_SEALED_MEMORY_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/core/result.hpp>

#include <cstddef>

namespace coaccel::detail {

/// Memory that one process makes and others map by its descriptor. Its size never changes, so no process can take it
/// from under the others. It is sealed before it is passed on: with memory_access::read_only no process can change its
/// content any more, and a stray write is a fault of the writer. It is freed when no descriptor and no mapping of it is
/// left.
class COACCEL_DECL sealed_memory {
public:
    /// Creates zeroed memory that can be written. `label` appears in the memory maps of the processes and in messages.
    ///
    /// Errors: errc::out_of_memory, also if no descriptor is left.
    static result<sealed_memory> create(std::size_t bytes, const char* label);

    /// Maps sealed memory. Errors: those of `check`, or errc::out_of_memory.
    static result<sealed_memory> open(const unique_fd& fd, std::size_t bytes, memory_access access);

    /// Whether the descriptor is that of memory of this size, sealed with this access. Errors: errc::invalid_argument,
    /// with the reason.
    static error_code check(const unique_fd& fd, std::size_t bytes, memory_access access);

    sealed_memory(sealed_memory&& other) noexcept;
    sealed_memory& operator=(sealed_memory&& other) noexcept;
    ~sealed_memory() { unmap(); }

    /// Seals the memory, which keeps its address, and gives up its descriptor. If this fails, the memory can still be
    /// written; if it can no longer be used at all, the error is errc::context_lost.
    ///
    /// Preconditions: not sealed; with memory_access::read_only no other thread accesses the memory meanwhile.
    result<unique_fd> seal(memory_access access);
    bool sealed() const noexcept { return !fd_; }

    void* data() const noexcept { return memory_; }
    std::size_t size() const noexcept { return bytes_; }

private:
    sealed_memory(unique_fd fd, void* memory, std::size_t bytes) noexcept
        : fd_(std::move(fd)), memory_(memory), bytes_(bytes)
    {}
    error_code forbid_writing();
    void unmap() noexcept;

    /// Empty if the memory is sealed.
    unique_fd fd_;
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace coaccel::detail

#endif
