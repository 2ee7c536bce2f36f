#include "cuda/jit/compile_for.hpp"

#include "cuda/jit/compiler.hpp"
#include "cuda/load/driver_setup.hpp"

namespace coaccel::cuda {

result<jit::kernel> compile_for(const hardware_info& hardware, const std::string& source,
                                const jit::compile_options& options)
{
    const driver_api* driver = loaded_driver();
    return compile(source, options,
                   {.architecture = hardware.compute_capability, .driver_version = driver ? driver->version : 0});
}

} // namespace coaccel::cuda
