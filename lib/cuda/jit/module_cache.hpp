#ifndef COACCEL_CUDA_JIT_MODULE_CACHE_HPP
#define COACCEL_CUDA_JIT_MODULE_CACHE_HPP

#include "cuda/jit/loaded_kernel.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coaccel::cuda {

class backend;

/// The kernels of one context, by image id. Used on the device's executor only; slow work runs on the thread pool.
class module_cache {
public:
    explicit module_cache(backend& owner) noexcept : backend_(owner) {}
    module_cache(const module_cache&) = delete;
    module_cache& operator=(const module_cache&) = delete;
    /// Makes no driver call.
    ~module_cache();

    /// Starts loading the kernel if it is not loaded yet. The kernel stays until it is released as often as it was
    /// acquired, even if the jit::kernel is destroyed.
    ///
    /// Errors: errc::invalid_argument when there is no such kernel, errc::unsupported_op when it has no device code.
    result<loaded_kernel*> acquire(std::uint64_t id);
    void release(loaded_kernel& kernel) noexcept;

    /// Unloads all kernels. Preconditions: the thread pool has stopped; the context is healthy and current.
    void destroy() noexcept;

    /// Number of kernels that are loaded, being loaded or waiting to be unloaded.
    std::size_t size() const noexcept { return kernels_.size() + retired_.size(); }

private:
    error_code start_loading(const std::shared_ptr<loaded_kernel>& kernel, std::shared_ptr<const jit::image> image);
    void unload_unused();

    backend& backend_;
    boost::unordered_flat_map<std::uint64_t, std::shared_ptr<loaded_kernel>> kernels_;
    std::vector<std::shared_ptr<loaded_kernel>> retired_;
};

} // namespace coaccel::cuda

#endif
