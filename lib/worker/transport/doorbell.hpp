#ifndef COACCEL_WORKER_TRANSPORT_DOORBELL_HPP
#define COACCEL_WORKER_TRANSPORT_DOORBELL_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <chrono>
#include <utility>

namespace coaccel::worker {

/// Wakes a sleeping thread in another process. It stays rung until it is cleared, however often it was rung.
///
/// A pipe: each process has its own end. O_NONBLOCK belongs to an end, not to a descriptor, so the other process cannot
/// make a call of this one block through its end. The process that creates the doorbell keeps an unused copy of the
/// other end too, so that neither a signal nor a hang-up occurs when the other process closes its end.
class COACCEL_DECL doorbell {
public:
    /// Errors: errc::out_of_memory if no descriptors are left.
    static result<doorbell> create();
    /// Adopts the end that another process has passed to this one: of a doorbell to wait for, or of one to ring.
    static doorbell adopt_wait(detail::unique_fd fd) noexcept;
    static doorbell adopt_ring(detail::unique_fd fd) noexcept;

    /// Wakes the sleeping thread of the other process. Not for a doorbell whose ring_fd() was passed to another
    /// process.
    void ring() noexcept;
    /// Wakes the sleeping thread of this process, only from wait().
    void interrupt() noexcept;
    /// Clears rings; an interruption stays until wait() has seen it.
    void clear() noexcept;

    /// Returns true if it rang or was interrupted, and clears it. With a timeout of zero or less it does not block.
    [[nodiscard]] bool wait(std::chrono::nanoseconds timeout) noexcept;

    /// For the waiting process; readable once the doorbell rang.
    int wait_fd() const noexcept { return wait_.get(); }
    /// For the ringing process.
    int ring_fd() const noexcept { return ring_.get(); }

private:
    doorbell(detail::unique_fd wait, detail::unique_fd ring, detail::unique_fd own) noexcept
        : wait_(std::move(wait)), ring_(std::move(ring)), own_(std::move(own))
    {}

    bool take() noexcept;

    detail::unique_fd wait_;
    detail::unique_fd ring_;
    // An eventfd that no other process has.
    detail::unique_fd own_;
};

} // namespace coaccel::worker

#endif
