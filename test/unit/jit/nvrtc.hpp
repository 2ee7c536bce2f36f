#ifndef COACCEL_TEST_UNIT_JIT_NVRTC_HPP
#define COACCEL_TEST_UNIT_JIT_NVRTC_HPP

#include "cuda/jit/compiler.hpp"
#include "support.hpp"

namespace test {

/// This machine's NVRTC. Without one, prints a message and returns null.
inline const coaccel::cuda::nvrtc_api* nvrtc()
{
    const auto loaded = coaccel::cuda::nvrtc_api::load();
    if (loaded)
        return loaded.value();
    MESSAGE("skipped: " << loaded.error().message());
    return nullptr;
}

/// Compiles for architecture 90 without a cache.
inline coaccel::result<coaccel::jit::kernel> compile(const std::string& source, coaccel::jit::compile_options options)
{
    return coaccel::cuda::compile(source, options.cache(coaccel::jit::disk_caching::off),
                                  {.architecture = 90, .driver_version = 13000});
}

inline bool is_cubin(const coaccel::jit::kernel& k)
{
    return k.native()->code.starts_with("\x7f"
                                        "ELF");
}

inline const std::string saxpy_source = R"(
extern "C" __global__ void saxpy(const float* x, float* y, float a, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}
)";

} // namespace test

#endif
