#include "cuda/jit/compile_for.hpp"

#include "cuda/jit/compiler.hpp"

namespace coaccel::cuda {

result<jit::kernel> compile_for(const hardware_info& hardware, const std::string& source,
                                const jit::compile_options& options)
{
    return compile(source, options,
                   {.architecture = hardware.compute_capability, .driver_version = hardware.driver_version});
}

} // namespace coaccel::cuda
