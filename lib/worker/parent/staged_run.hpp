#ifndef COACCEL_WORKER_PARENT_STAGED_RUN_HPP
#define COACCEL_WORKER_PARENT_STAGED_RUN_HPP

#include "worker/protocol/plan_frames.hpp"
#include "worker/transport/staging.hpp"

#include <coaccel/plan/detail/plan_ops.hpp>

namespace coaccel::worker {

/// Where the arguments of a run are in the staging area: pinned memory stays where it is, and all other arguments share
/// one block, the inputs first. The positions depend only on the op and the block, so they need not be stored.
class COACCEL_DECL staged_run {
public:
    staged_run(const detail::plan_run_op& op, const staging& memory) noexcept;

    /// The size of the block; zero if none is needed.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Whether the worker writes to pinned memory of the caller.
    bool into_pinned() const noexcept { return into_pinned_; }

    /// Copies the inputs into the block, and lists all arguments.
    void fill(std::uint64_t block, run_frame& frame) const;
    /// Copies the outputs from the block to the caller.
    void deliver(std::uint64_t block) const noexcept;

private:
    const detail::plan_run_op& op_;
    const staging& memory_;
    std::uint64_t bytes_ = 0;
    bool into_pinned_ = false;
};

} // namespace coaccel::worker

#endif
