#ifndef COACCEL_CUDA_ERRANDS_HPP
#define COACCEL_CUDA_ERRANDS_HPP

#include "cuda/backstage.hpp"

#include <coaccel/core/backend.hpp>

#include <atomic>
#include <functional>
#include <list>

namespace coaccel::cuda {

/// Ops that are one call of the driver's which may take its time. For one thread at a time; the backstage has stopped
/// before this goes. Owns what its ops hold, also when they are never finished.
class errands {
public:
    errands(backstage& helpers, std::function<void()> nudge) : helpers_(helpers), nudge_(std::move(nudge)) {}
    errands(const errands&) = delete;
    errands& operator=(const errands&) = delete;

    /// The first call for an op starts the job; it and the next ones say how far that is.
    result<progress> run(bound_op& op, std::function<error_code()> job);
    void finish(bound_op& op) noexcept;

private:
    struct errand {
        std::function<error_code()> job;
        error_code answer;
        std::atomic<bool> done{false};
    };

    backstage& helpers_;
    std::function<void()> nudge_;
    std::list<errand> open_;
};

} // namespace coaccel::cuda

#endif
