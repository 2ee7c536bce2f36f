#include "cuda/driver/context_handle.hpp"

#include "cuda/driver/error.hpp"

#include <string>

namespace coaccel::cuda {

result<context_handle> context_handle::create(const driver_api& api, int ordinal)
{
    int count = 0;
    if (auto ec = make_error(api.cuDeviceGetCount(&count)))
        return ec;
    if (ordinal >= count)
        return make_error_with_message(errc::no_device, "there is no GPU " + std::to_string(ordinal) +
                                                            ": the driver has " + std::to_string(count));
    CUdevice device = 0;
    if (auto ec = make_error(api.cuDeviceGet(&device, ordinal)))
        return ec;
    CUcontext primary = nullptr;
    if (auto ec = make_error(api.cuDevicePrimaryCtxRetain(&primary, device)))
        return ec;
    return context_handle(api, device, primary);
}

context_handle::~context_handle()
{
    if (context_)
        (void)api_->cuDevicePrimaryCtxRelease(device_);
}

} // namespace coaccel::cuda
