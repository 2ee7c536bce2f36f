#include "cuda/jit/loaded_kernel.hpp"

#include <coaccel/ops/jit/types.hpp>

namespace coaccel::cuda {
namespace {

std::string text(const std::string& kernel, const char* what, std::uint64_t given, int limit)
{
    return kernel + ": " + what + " is " + std::to_string(given) + ", the device allows " + std::to_string(limit);
}

} // namespace

CUresult launch_limits::read(const driver_api& api, CUdevice device, launch_limits& out) noexcept
{
    const struct {
        CUdevice_attribute attribute;
        int& value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, out.grid[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, out.grid[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, out.grid[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, out.block[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, out.block[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, out.block[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, out.threads},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, out.shared_bytes},
    };
    for (const auto& w : wanted)
        if (const auto r = api.cuDeviceGetAttribute(&w.value, w.attribute, device); r != CUDA_SUCCESS)
            return r;
    return CUDA_SUCCESS;
}

error_code loaded_kernel::check(const jit::launch_shape& shape) const
{
    const auto& [grid, block, shared] = shape;
    const struct {
        const char* what;
        std::uint64_t given;
        int limit;
    } rows[] = {
        {"grid.x", grid.x, limits.grid[0]},
        {"grid.y", grid.y, limits.grid[1]},
        {"grid.z", grid.z, limits.grid[2]},
        {"block.x", block.x, limits.block[0]},
        {"block.y", block.y, limits.block[1]},
        {"block.z", block.z, limits.block[2]},
        {"the number of threads in a block", std::uint64_t(block.x) * block.y * block.z, limits.threads},
        {"the shared memory of a block", std::uint64_t(shared) + std::uint64_t(static_shared_bytes),
         limits.shared_bytes},
    };
    for (const auto& r : rows)
        if (r.given > static_cast<std::uint64_t>(r.limit))
            return make_error_with_message(errc::invalid_launch, text(name, r.what, r.given, r.limit));
    return {};
}

} // namespace coaccel::cuda
