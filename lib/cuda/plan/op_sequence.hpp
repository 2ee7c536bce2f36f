#ifndef COACCEL_CUDA_PLAN_OP_SEQUENCE_HPP
#define COACCEL_CUDA_PLAN_OP_SEQUENCE_HPP

#include "cuda/driver/driver_api.hpp"
#include "cuda/plan/helper_job.hpp"

#include <cstddef>
#include <span>

namespace coaccel::cuda {

class backend;
class stream_state;

/// Puts ops on a stream one after another. A launch blocks in the driver when its queue is full, so after every so many
/// commands the sequence is pending until the device has completed them.
class op_sequence {
public:
    static constexpr std::size_t most_commands = 256;

    explicit op_sequence(backend& b) noexcept;

    /// `after`: the ops are on a stream of their own, which waits for this one. They are not part of an in-flight
    /// request there, so the sequence waits for them as `wait_on_own_stream`. Null: they are on the stream of a
    /// request. Preconditions: the ops of the previous sequence are finished.
    void start(std::span<bound_op> ops, CUstream after = nullptr) noexcept;

    /// Continues. `passed`: all ops are on the stream.
    result<progress> advance(stream_state& s);

    /// Finishes the ops that were started and returns the first error of one. Preconditions: the device has completed
    /// them.
    error_code finish() noexcept { return finish_until(begun_); }

    /// The number of commands on the stream that the device may not have completed.
    std::size_t commands() const noexcept { return commands_; }

private:
    error_code finish_until(std::size_t end) noexcept;

    backend& backend_;
    std::span<bound_op> ops_;
    /// Ops before these are on the stream, started, finished.
    std::size_t next_ = 0;
    std::size_t begun_ = 0;
    std::size_t finished_ = 0;
    std::size_t commands_ = 0;
    CUstream after_ = nullptr;
    helper_job catch_up_;
};

/// Waits for the work on a stream that belongs to no in-flight request; blocks. Such work counts as hanging if it takes
/// longer than `hang_timeout` after the work on the stream `after`, which comes first.
error_code wait_on_own_stream(backend& b, CUstream own, CUstream after);

} // namespace coaccel::cuda

#endif
