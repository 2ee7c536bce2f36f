#include "cuda/jit/module_cache.hpp"

#include "cuda/backend.hpp"
#include "jit/registry.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::cuda {
namespace {

using stage = loaded_kernel::stage;

constexpr int default_dynamic_shared = 48 << 10;

CUresult read_function(const driver_api& api, loaded_kernel& k)
{
    int threads = 0;
    if (const auto r = api.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k.function);
        r != CUDA_SUCCESS)
        return r;
    k.limits.threads = std::min(k.limits.threads, threads);
    k.dynamic_shared_bytes = default_dynamic_shared;
    return api.cuFuncGetAttribute(&k.static_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k.function);
}

CUresult read_parameters(const driver_api& api, loaded_kernel& k)
{
    for (std::size_t i = 0;; ++i) {
        std::size_t offset = 0;
        std::size_t size = 0;
        const auto r = api.cuFuncGetParamInfo(k.function, i, &offset, &size);
        // The index is one past the last parameter.
        if (r == CUDA_ERROR_INVALID_VALUE)
            return CUDA_SUCCESS;
        if (r != CUDA_SUCCESS)
            return r;
        k.parameters.push_back(size);
    }
}

CUresult load(const driver_api& api, CUdevice device, loaded_kernel& k, const jit::image& image)
{
    auto r = launch_limits::read(api, device, k.limits);
    if (r == CUDA_SUCCESS)
        r = api.cuModuleLoadData(&k.module, image.code.c_str());
    if (r == CUDA_SUCCESS)
        r = api.cuModuleGetFunction(&k.function, k.module, image.symbol.c_str());
    if (r == CUDA_SUCCESS)
        r = read_function(api, k);
    return r == CUDA_SUCCESS ? read_parameters(api, k) : r;
}

} // namespace

module_cache::~module_cache() = default;

result<loaded_kernel*> module_cache::acquire(std::uint64_t id)
{
    if (const auto found = kernels_.find(id); found != kernels_.end()) {
        ++found->second->users;
        return found->second.get();
    }
    auto image = jit::find_image(id);
    if (!image)
        return make_error_with_message(errc::invalid_argument, "the kernel is gone");
    if (image->code.empty())
        return make_error_with_message(errc::unsupported_op, image->name + " has no code for a device: " + image->log);
    unload_unused();
    auto made = std::make_shared<loaded_kernel>(id, image->name, image);
    if (auto ec = start_loading(made, std::move(image)))
        return ec;
    made->users = 1;
    auto* kernel = made.get();
    kernels_.emplace(id, std::move(made));
    return kernel;
}

void module_cache::release(loaded_kernel& kernel) noexcept
{
    // Remove a failed kernel, so that the next op loads it again.
    if (--kernel.users == 0 && kernel.where.load(std::memory_order_acquire) == stage::failed)
        kernels_.erase(kernel.id);
}

error_code module_cache::start_loading(const std::shared_ptr<loaded_kernel>& kernel,
                                       std::shared_ptr<const jit::image> image)
{
    const bool started = backend_.helpers().run([this, kernel, image = std::move(image)] {
        if (backend_.dead())
            kernel->error = errc::context_lost;
        else
            kernel->error = backend_.check(load(backend_.api(), backend_.device(), *kernel, *image));
        if (kernel->error && kernel->module && !backend_.dead())
            (void)backend_.check(backend_.api().cuModuleUnload(std::exchange(kernel->module, nullptr)));
        kernel->where.store(kernel->error ? stage::failed : stage::ready, std::memory_order_release);
        backend_.notify_progress();
    });
    return started ? error_code{} : make_error_code(errc::out_of_memory);
}

void module_cache::unload_unused()
{
    std::erase_if(retired_, [](const auto& k) { return k->where.load(std::memory_order_acquire) == stage::gone; });
    for (auto i = kernels_.begin(); i != kernels_.end();) {
        auto& k = i->second;
        const bool unused =
            k->users == 0 && k->where.load(std::memory_order_acquire) == stage::ready && k->image.expired();
        const bool retired = unused && backend_.helpers().run([this, k] {
            if (!backend_.dead())
                (void)backend_.check(backend_.api().cuModuleUnload(std::exchange(k->module, nullptr)));
            k->where.store(stage::gone, std::memory_order_release);
        });
        if (retired) {
            retired_.push_back(std::move(k));
            kernels_.erase(i++);
        } else {
            ++i;
        }
    }
}

void module_cache::destroy() noexcept
{
    const auto unload = [this](loaded_kernel& k) {
        if (k.module && !backend_.dead())
            (void)backend_.check(backend_.api().cuModuleUnload(std::exchange(k.module, nullptr)));
    };
    for (auto& [id, k] : kernels_)
        unload(*k);
    for (auto& k : retired_)
        unload(*k);
    kernels_.clear();
    retired_.clear();
}

} // namespace coaccel::cuda
