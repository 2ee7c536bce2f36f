#ifndef COACCEL_CUDA_CONTEXT_HANDLE_HPP
#define COACCEL_CUDA_CONTEXT_HANDLE_HPP

#include "cuda/load/driver_api.hpp"

#include <utility>

namespace coaccel::cuda {

/// A context of our own on one GPU: current only inside a scope.
class context_handle {
public:
    /// Makes the context current on this thread, and what was current before current again.
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

    /// errc::no_device names the ordinal; takes about 0.1 s.
    static result<context_handle> create(const driver_api& api, int ordinal);

    context_handle(context_handle&& other) noexcept
        : api_(other.api_), device_(other.device_), context_(std::exchange(other.context_, nullptr))
    {}
    context_handle& operator=(context_handle&&) = delete;

    /// Destroys the context, unless it was forgotten.
    ~context_handle();

    const driver_api& api() const noexcept { return *api_; }
    CUdevice device() const noexcept { return device_; }
    CUcontext native() const noexcept { return context_; }

    /// An empty scope when the context is dead.
    scope enter(bool dead) const noexcept { return {dead ? nullptr : api_, context_}; }

    /// A dead context is left to the end of the process.
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
