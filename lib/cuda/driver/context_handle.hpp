#ifndef COACCEL_CUDA_DRIVER_CONTEXT_HANDLE_HPP
#define COACCEL_CUDA_DRIVER_CONTEXT_HANDLE_HPP

#include "cuda/driver/driver_api.hpp"

#include <utility>

namespace coaccel::cuda {

/// Our own context on one GPU; it is current only inside a scope.
class context_handle {
public:
    /// Makes the context current on this thread and restores the previous one at the end.
    class [[nodiscard]] scope {
    public:
        scope(const driver_api* api, CUcontext context) noexcept : api_(api)
        {
            if (api_ && api_->cuCtxPushCurrent(context) != CUDA_SUCCESS)
                api_ = nullptr;
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

        ~scope()
        {
            CUcontext popped = nullptr;
            if (api_)
                (void)api_->cuCtxPopCurrent(&popped);
        }

    private:
        const driver_api* api_;
    };

    /// Takes about 0.1 s. Errors: errc::no_device, with the ordinal in the message.
    static result<context_handle> create(const driver_api& api, int ordinal);

    context_handle(context_handle&& other) noexcept
        : api_(other.api_), device_(other.device_), context_(std::exchange(other.context_, nullptr))
    {}
    context_handle& operator=(context_handle&&) = delete;

    /// Destroys the context, unless forget() was called.
    ~context_handle();

    const driver_api& api() const noexcept { return *api_; }
    CUdevice device() const noexcept { return device_; }
    CUcontext native() const noexcept { return context_; }

    /// Returns an empty scope if the context is dead.
    scope enter(bool dead) const noexcept { return {dead ? nullptr : api_, context_}; }

    /// Leaves a dead context to process exit.
    void forget() noexcept { context_ = nullptr; }

private:
    context_handle(const driver_api& api, CUdevice device, CUcontext context) noexcept
        : api_(&api), device_(device), context_(context)
    {}

    const driver_api* api_;
    CUdevice device_;
    CUcontext context_;
};

} // namespace coaccel::cuda

#endif
