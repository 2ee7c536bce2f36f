#ifndef OWN_KERNEL_SMOOTH_HPP
#define OWN_KERNEL_SMOOTH_HPP

#include <span>

// What the two sides share: neither Asio here, which nvcc does not accept, nor CUDA.

/// Each element of `out` becomes the mean of its neighbourhood in `in`. `stream` is a cudaStream_t. True: it was
/// started.
bool smooth_on_gpu(std::span<const float> in, std::span<float> out, void* stream);

void smooth_on_cpu(std::span<const float> in, std::span<float> out);

#endif
