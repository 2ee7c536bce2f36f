#ifndef COACCEL_CUDA_DRIVER_DRIVER_THREADS_HPP
#define COACCEL_CUDA_DRIVER_DRIVER_THREADS_HPP

#include "cuda/driver/driver_api.hpp"
#include "posix/thread_pool.hpp"

#include <algorithm>
#include <atomic>

namespace coaccel::cuda {

/// Threads for driver calls that may block. One context is current on all of them.
class driver_threads : public detail::thread_pool {
public:
    driver_threads(const driver_api& api, CUcontext context, int limit)
        // If this call fails, the calls of the jobs fail too and report the error.
        : thread_pool(static_cast<std::size_t>(std::max(limit, 1)), [this, &api, context] {
              // A thread may start late, when the context is dead.
              if (context_dead())
                  return;
              (void)api.cuCtxSetCurrent(context);
              // As in context_handle::scope: jobs must not invalidate the stream captures of other code.
              CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
              (void)api.cuThreadExchangeStreamCaptureMode(&mode);
          })
    {}

    /// From now on jobs make no further calls for the context, because the driver would refuse all of them.
    void context_died() noexcept { context_dead_.store(true, std::memory_order_release); }
    bool context_dead() const noexcept { return context_dead_.load(std::memory_order_acquire); }

private:
    std::atomic<bool> context_dead_{false};
};

} // namespace coaccel::cuda

#endif
