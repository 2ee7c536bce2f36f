#ifndef COACCEL_WORKER_DOORBELL_HPP
#define COACCEL_WORKER_DOORBELL_HPP

#include "worker/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <chrono>
#include <utility>

namespace coaccel::worker {

/// Wakes a sleeper in another process. It stays rung until it is cleared, however often it was rung.
class COACCEL_DECL doorbell {
public:
    /// errc::out_of_memory when there are no descriptors left.
    static result<doorbell> create();
    static doorbell adopt(unique_fd fd) noexcept { return doorbell(std::move(fd)); }

    void ring() noexcept;
    void clear() noexcept;

    /// True when it rang, which clears it. A timeout of zero or less only looks.
    [[nodiscard]] bool wait(std::chrono::nanoseconds timeout) noexcept;

    int fd() const noexcept { return fd_.get(); }

private:
    explicit doorbell(unique_fd fd) noexcept : fd_(std::move(fd)) {}
    bool take() noexcept;

    unique_fd fd_;
};

} // namespace coaccel::worker

#endif
