#ifndef COACCEL_CUDA_DRIVER_CONTEXT_HANDLE_HPP
#define COACCEL_CUDA_DRIVER_CONTEXT_HANDLE_HPP

#include "cuda/driver/driver_api.hpp"

#include <utility>

namespace coaccel::cuda {

/// A reference to the primary context of one GPU; it is current only inside a scope.
///
/// All devices of the process on one GPU use this context, as does code built on the CUDA runtime: separate contexts on
/// one GPU take turns in slices of milliseconds. So whatever is created in the context must be destroyed one by one:
/// the context, and anything left in it, lives as long as its last user.
class context_handle {
public:
    /// Makes the context current on this thread and restores the previous one at the end. In between, the calls of this
    /// thread do not break stream captures of other code: in the default mode, an event query here would invalidate a
    /// capture that another thread has begun in global mode.
    class [[nodiscard]] scope {
    public:
        scope(const driver_api* api, CUcontext context) noexcept : api_(api)
        {
            if (api_ && api_->cuCtxPushCurrent(context) != CUDA_SUCCESS)
                api_ = nullptr;
            relaxed_ = api_ && api_->cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
        }
        scope(const scope&) = delete;
        scope& operator=(const scope&) = delete;

        ~scope()
        {
            if (relaxed_)
                (void)api_->cuThreadExchangeStreamCaptureMode(&mode_);
            CUcontext popped = nullptr;
            if (api_)
                (void)api_->cuCtxPopCurrent(&popped);
        }

    private:
        const driver_api* api_;
        /// The mode to set, then the mode to restore.
        CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
        bool relaxed_ = false;
    };

    /// Takes about 0.1 s if nothing in the process uses this context yet. Errors: errc::no_device, with the ordinal in
    /// the message.
    static result<context_handle> create(const driver_api& api, int ordinal);

    context_handle(context_handle&& other) noexcept
        : api_(other.api_), device_(other.device_), context_(std::exchange(other.context_, nullptr))
    {}
    context_handle& operator=(context_handle&&) = delete;

    /// Releases the context, unless forget() was called.
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
