#ifndef COACCEL_CUDA_PLAN_RUN_TIMER_HPP
#define COACCEL_CUDA_PLAN_RUN_TIMER_HPP

#include <cstddef>
#include <cstdint>
#include <cuda.h>

namespace coaccel::cuda {

class backend;

/// Measures some of the runs of a plan instance by two events around them on their stream. A failure leaves the run
/// unmeasured: a fault of the context is found by the run itself.
class run_timer {
public:
    /// Measures this run if it is the first of `every` runs; of none if that is zero.
    void begin_run(int every) noexcept { active_ = every != 0 && runs_++ % static_cast<std::uint64_t>(every) == 0; }

    void start(backend& b, CUstream s) noexcept;
    void stop(backend& b, CUstream s) noexcept;

    /// The nanoseconds between `start` and `stop`, or zero. Preconditions: the device has completed the run.
    std::uint64_t end_run(backend& b) noexcept;

    /// Commands of this run on its stream.
    std::size_t commands() const noexcept { return active_ ? 2 : 0; }

    void destroy(backend& b) noexcept;

private:
    /// Makes the event on its first use.
    bool record(backend& b, CUevent& e, CUstream s) noexcept;

    CUevent start_ = nullptr;
    CUevent stop_ = nullptr;
    std::uint64_t runs_ = 0;
    bool active_ = false;
    bool stopped_ = false;
};

} // namespace coaccel::cuda

#endif
