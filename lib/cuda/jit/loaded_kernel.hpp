#ifndef COACCEL_CUDA_JIT_LOADED_KERNEL_HPP
#define COACCEL_CUDA_JIT_LOADED_KERNEL_HPP

#include "cuda/driver/driver_api.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace coaccel::jit {

struct image;
struct launch_shape;

} // namespace coaccel::jit

namespace coaccel::cuda {

/// The launch limits of a device.
struct launch_limits {
    int grid[3] = {};
    int block[3] = {};
    int threads = 0;
    /// Per block, static and dynamic together.
    int shared_bytes = 0;

    static CUresult read(const driver_api& api, CUdevice device, launch_limits& out) noexcept;
};

/// A kernel in a context. One thread loads it; others may read it once `where` is no longer `loading`.
class loaded_kernel {
public:
    enum class stage : std::uint8_t { loading, ready, failed, gone };

    loaded_kernel(std::uint64_t image_id, std::string kernel_name, std::weak_ptr<const jit::image> owner)
        : id(image_id), name(std::move(kernel_name)), image(std::move(owner))
    {}

    const std::uint64_t id;
    const std::string name;
    const std::weak_ptr<const jit::image> image;

    std::atomic<stage> where{stage::loading};
    /// The reason of the failure.
    error_code error;

    CUmodule module = nullptr;
    CUfunction function = nullptr;
    launch_limits limits;
    int static_shared_bytes = 0;
    /// Static plus dynamic shared memory that the function is configured for; more requires cuFuncSetAttribute.
    int dynamic_shared_bytes = 0;
    /// Sizes of the parameters, in order.
    std::vector<std::size_t> parameters;

    /// Number of ops that hold it; used on the executor only.
    int users = 0;

    /// Errors: errc::invalid_launch, with the exceeded limit in the message.
    error_code check(const jit::launch_shape& shape) const;
};

} // namespace coaccel::cuda

#endif
