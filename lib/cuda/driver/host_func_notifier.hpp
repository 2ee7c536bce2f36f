#ifndef COACCEL_CUDA_DRIVER_HOST_FUNC_NOTIFIER_HPP
#define COACCEL_CUDA_DRIVER_HOST_FUNC_NOTIFIER_HPP

#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/backend.hpp>

#include <atomic>

namespace coaccel::cuda {

/// Turns a driver host function into a notification, one at a time.
class host_func_notifier {
public:
    host_func_notifier() : cell_(new cell) {}
    host_func_notifier(const host_func_notifier&) = delete;
    host_func_notifier& operator=(const host_func_notifier&) = delete;
    ~host_func_notifier();

    /// Makes the driver send the notification once all work now on the stream has completed.
    CUresult arm(const driver_api& api, CUstream stream, notification n) noexcept;

    /// No notification is sent after this returns.
    void disarm() noexcept;

    /// Leaks the argument of the host function: after a fault the driver may or may not call it later.
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
