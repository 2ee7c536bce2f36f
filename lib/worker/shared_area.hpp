#ifndef COACCEL_WORKER_SHARED_AREA_HPP
#define COACCEL_WORKER_SHARED_AREA_HPP

#include "worker/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace coaccel::worker {

/// Memory that two processes have, of a size neither can change. It has no name in any file system: only who is given
/// the descriptor has it.
class COACCEL_DECL shared_area {
public:
    /// Zeroed memory. `label` appears in the memory maps of the processes and in messages.
    ///
    /// Errors: errc::invalid_option for a size of zero or one that no address space has; errc::out_of_memory.
    static result<shared_area> create(std::size_t bytes, const char* label);

    /// Maps what a peer created; errc::worker_corrupted when it is not of that size, or could be resized.
    static result<shared_area> adopt(unique_fd fd, std::size_t bytes);

    shared_area(shared_area&& other) noexcept;
    shared_area& operator=(shared_area&& other) noexcept;
    ~shared_area() { unmap(); }

    std::span<std::byte> bytes() const noexcept { return bytes_; }
    int fd() const noexcept { return fd_.get(); }

private:
    shared_area(unique_fd fd, std::span<std::byte> bytes) noexcept : fd_(std::move(fd)), bytes_(bytes) {}
    void unmap() noexcept;

    unique_fd fd_;
    std::span<std::byte> bytes_;
};

} // namespace coaccel::worker

#endif
