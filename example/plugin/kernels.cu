// The plug-in. It is compiled by nvcc, or as C++ for the CPU when nvcc is not available.
#include <coaccel/plugin/export.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>

namespace {

#ifdef __CUDACC__
__global__ void smooth_kernel(const float* in, float* out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = (in[i == 0 ? 0 : i - 1] + in[i] + in[i + 1 == n ? i : i + 1]) / 3.0f;
}

__global__ void stumble_kernel(float* nowhere)
{
    *nowhere = 1.0f;
}
#endif

void smooth_on_cpu(std::span<const float> in, std::span<float> out)
{
    const std::size_t n = in.size();
    for (std::size_t i = 0; i < n; ++i)
        out[i] = (in[i == 0 ? 0 : i - 1] + in[i] + in[i + 1 == n ? i : i + 1]) / 3.0f;
}

//[functions
// On a GPU a function puts its kernels on the stream and returns; on the CPU it does the work.
void smooth(coaccel::plugin::stream stream, std::span<const float> in, std::span<float> out)
{
    if (!stream.on_gpu())
        return smooth_on_cpu(in, out);
#ifdef __CUDACC__
    const auto n = static_cast<unsigned>(in.size());
    smooth_kernel<<<(n + 255) / 256, 256, 0, static_cast<cudaStream_t>(stream.handle)>>>(in.data(), out.data(), n);
    if (const auto error = cudaGetLastError(); error != cudaSuccess)
        throw std::runtime_error(cudaGetErrorString(error));
#else
    throw std::runtime_error("compiled without nvcc");
#endif
}

COACCEL_PLUGIN_FUNCTION(smooth)
//]

// Writes to an invalid address, as kernels under development do.
void stumble(coaccel::plugin::stream stream)
{
#ifdef __CUDACC__
    if (stream.on_gpu()) {
        stumble_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream.handle)>>>(nullptr);
        return;
    }
#endif
    // Both are volatile, so that the compiler neither knows the address nor removes the unused write.
    volatile float* volatile nowhere = nullptr;
    if (!stream.on_gpu())
        *nowhere = 1.0f;
}

//[version
COACCEL_PLUGIN_FUNCTION_VERSION(stumble, 2)
//]

} // namespace
