#include "posix/environment.hpp"

#include <coaccel/device/warm_kernels.hpp>

#ifdef COACCEL_HAS_CUDA
#include "cuda/prim/warm_kernels.hpp"
#endif

namespace coaccel {

result<std::uint64_t> warm_kernels([[maybe_unused]] const std::function<void(std::uint64_t, std::uint64_t)>& progress)
{
    (void)detail::copy_environment();
#ifdef COACCEL_HAS_CUDA
    return cuda::warm_kernels(progress);
#else
    return make_error_with_message(errc::backend_unavailable, "this build has no CUDA backend, so no kernels");
#endif
}

} // namespace coaccel
