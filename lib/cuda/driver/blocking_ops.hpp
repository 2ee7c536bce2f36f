#ifndef COACCEL_CUDA_DRIVER_BLOCKING_OPS_HPP
#define COACCEL_CUDA_DRIVER_BLOCKING_OPS_HPP

#include "cuda/driver/driver_threads.hpp"

#include <coaccel/core/backend.hpp>

#include <atomic>
#include <functional>
#include <list>

namespace coaccel::cuda {

/// Ops that consist of one driver call which may block. Use from one thread at a time. Stop the thread pool before
/// destroying this object. Owns the state of its ops, even if they are never finished.
class blocking_ops {
public:
    blocking_ops(driver_threads& helpers, std::function<void()> notify_progress)
        : helpers_(helpers), notify_progress_(std::move(notify_progress))
    {}
    blocking_ops(const blocking_ops&) = delete;
    blocking_ops& operator=(const blocking_ops&) = delete;

    /// The first call for an op starts the job; every call returns the job's progress.
    result<progress> run(bound_op& op, std::function<error_code()> job);
    void finish(bound_op& op) noexcept;

private:
    struct blocking_op {
        std::function<error_code()> job;
        error_code answer;
        std::atomic<bool> done{false};
    };

    driver_threads& helpers_;
    std::function<void()> notify_progress_;
    std::list<blocking_op> open_;
};

} // namespace coaccel::cuda

#endif
