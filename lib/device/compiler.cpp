#include "device/compiler.hpp"

#include "jit/image.hpp"

#ifdef COACCEL_HAS_CUDA
#include "cuda/jit/compile_for.hpp"
#endif

namespace coaccel::detail {

result<jit::kernel> compile(const std::string& source, const jit::compile_options& how, const hardware_info& hardware)
{
    // On the CPU the host function is sufficient, and is available faster than code for an unspecified GPU.
    if (hardware.compute_capability == 0 && how.host() && how.architecture() == 0)
        return jit::make_host_kernel(how, "this device runs the host function");
#ifdef COACCEL_HAS_CUDA
    return cuda::compile_for(hardware, source, how);
#else
    (void)source;
    return make_error_with_message(errc::backend_unavailable, "this build of coaccel cannot compile kernels");
#endif
}

} // namespace coaccel::detail
