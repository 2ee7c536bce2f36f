#ifndef COACCEL_CUDA_PLAN_HELPER_JOB_HPP
#define COACCEL_CUDA_PLAN_HELPER_JOB_HPP

#include "cuda/driver/blocking_ops.hpp"

#include <utility>

namespace coaccel::cuda {

/// A job on the thread pool for an op that stays pending meanwhile. One at a time, any number in succession.
class helper_job {
public:
    explicit helper_job(blocking_ops& jobs) noexcept : jobs_(jobs) {}
    helper_job(const helper_job&) = delete;
    helper_job& operator=(const helper_job&) = delete;

    /// Starts the job, unless it is running. Call this until the result is no longer `pending`.
    template <class Job>
    result<progress> run(Job job)
    {
        auto done = jobs_.run(key_, std::move(job));
        if (!done || done.value() == progress::passed)
            jobs_.finish(key_);
        return done;
    }

    /// A job was started and its end was not reported yet.
    bool running() const noexcept { return key_.state != nullptr; }

private:
    blocking_ops& jobs_;
    /// Identifies the job.
    bound_op key_;
};

} // namespace coaccel::cuda

#endif
