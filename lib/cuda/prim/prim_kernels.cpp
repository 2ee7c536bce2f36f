#include "cuda/prim/prim_kernels.hpp"

#include "cuda/backend.hpp"
#include "cuda/jit/compiler.hpp"
#include "cuda/prim/kernel_source.hpp"

#include <utility>

namespace coaccel::cuda {
namespace {

result<jit::kernel> compile_prim(const backend& b, const std::string& name)
{
    BOOST_OUTCOME_TRY(const auto* nvrtc, b.libraries().get<nvrtc_api>());
    const auto hardware = b.hardware();
    return compile(
        prim_kernel_source(), prim_compile_options(name),
        {.architecture = hardware.compute_capability, .driver_version = hardware.driver_version, .nvrtc = nvrtc});
}

} // namespace

jit::compile_options prim_compile_options(std::string name)
{
    // The source has functions for all kernels, of which one kernel uses few (177). Some of them compare an unsigned
    // number with zero (186).
    return std::move(jit::compile_options(std::move(name)).option("--diag-suppress=177,186"));
}

result<loaded_kernel*> prim_kernels::acquire(const key& k, std::string (*name)(const void* op), const void* op)
{
    auto found = kernels_.find(k);
    if (found == kernels_.end()) {
        make_room();
        auto made = std::make_shared<compilation>();
        made->last_use = ++uses_;
        if (auto ec = start(made, name(op)))
            return ec;
        kernels_.emplace(k, std::move(made));
        return nullptr;
    }
    compilation& c = *found->second;
    c.last_use = ++uses_;
    if (!c.done.load(std::memory_order_acquire))
        return nullptr;
    if (c.error) {
        const auto failed = c.error;
        kernels_.erase(found);
        return failed;
    }
    return backend_.modules().acquire(c.kernel.id());
}

error_code prim_kernels::start(const std::shared_ptr<compilation>& made, std::string name)
{
    const bool started = backend_.helpers().run([this, made, name = std::move(name)] {
        if (backend_.dead()) {
            made->error = errc::context_lost;
        } else if (auto compiled = compile_prim(backend_, name)) {
            made->kernel = std::move(compiled).value();
        } else {
            made->error = compiled.error();
        }
        made->done.store(true, std::memory_order_release);
        backend_.notify_progress();
    });
    return started ? error_code{} : make_error_code(errc::out_of_memory);
}

void prim_kernels::make_room()
{
    while (kernels_.size() >= most_kernels) {
        auto oldest = kernels_.end();
        for (auto i = kernels_.begin(); i != kernels_.end(); ++i)
            if (i->second->done.load(std::memory_order_acquire) &&
                (oldest == kernels_.end() || i->second->last_use < oldest->second->last_use))
                oldest = i;
        if (oldest == kernels_.end())
            return;
        // The module stays until the ops that use it have ended.
        kernels_.erase(oldest);
    }
}

} // namespace coaccel::cuda
