#ifndef COACCEL_WORKER_DOORBELL_HPP
#define COACCEL_WORKER_DOORBELL_HPP

#include "worker/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <chrono>
#include <utility>

namespace coaccel::worker {

/// Wakes a sleeper in another process. It stays rung until it is cleared, however often it was rung.
///
/// A pipe: each process has an end of its own. O_NONBLOCK belongs to an end, not to a descriptor, so what the other
/// process does to its end never makes a call of this one block. The process that creates the bell keeps a copy of the
/// other end too, unused, so that neither a signal nor a hang-up comes when the other process closes its end.
class COACCEL_DECL doorbell {
public:
    /// errc::out_of_memory when there are no descriptors left.
    static result<doorbell> create();
    /// The end that another process has given to this one: of a bell to wait for, or of one to ring.
    static doorbell adopt_wait(unique_fd fd) noexcept;
    static doorbell adopt_ring(unique_fd fd) noexcept;

    /// Wakes the sleeper of the other process. Not for a bell whose ring_fd() was given away.
    void ring() noexcept;
    /// Wakes the sleeper of this process, in wait() only.
    void interrupt() noexcept;
    /// Of rings; an interruption stays until wait() has seen it.
    void clear() noexcept;

    /// True when it rang or was interrupted, which clears it. A timeout of zero or less only looks.
    [[nodiscard]] bool wait(std::chrono::nanoseconds timeout) noexcept;

    /// For the process that waits; readable once it rang.
    int wait_fd() const noexcept { return wait_.get(); }
    /// For the process that rings.
    int ring_fd() const noexcept { return ring_.get(); }

private:
    doorbell(unique_fd wait, unique_fd ring, unique_fd own) noexcept
        : wait_(std::move(wait)), ring_(std::move(ring)), own_(std::move(own))
    {}

    bool take() noexcept;

    unique_fd wait_;
    unique_fd ring_;
    // An eventfd, which no other process has.
    unique_fd own_;
};

} // namespace coaccel::worker

#endif
