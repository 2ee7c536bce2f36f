#ifndef COACCEL_CUDA_CALLBACK_HPP
#define COACCEL_CUDA_CALLBACK_HPP

#include "cuda/load/driver_api.hpp"

#include <coaccel/core/backend.hpp>

#include <atomic>

namespace coaccel::cuda {

/// The way from a host function of the driver's to a notification, one at a time.
class callback {
public:
    callback() : cell_(new cell) {}
    callback(const callback&) = delete;
    callback& operator=(const callback&) = delete;
    ~callback();

    /// Has the driver notify once everything on the stream so far has passed.
    CUresult arm(const driver_api& api, CUstream stream, notification n) noexcept;

    /// Nobody is notified after this returns.
    void disarm() noexcept;

    /// After a fault nobody knows whether the driver will still call, so its argument must stay where it is for ever.
    void abandon() noexcept;

private:
    struct cell {
        std::atomic<bool> armed{false};
        std::atomic<int> inside{0};
        notification notify;
    };

    static void CUDA_CB fire(void* argument);

    cell* cell_;
};

} // namespace coaccel::cuda

#endif
