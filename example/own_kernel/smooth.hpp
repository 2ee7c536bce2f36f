#ifndef OWN_KERNEL_SMOOTH_HPP
#define OWN_KERNEL_SMOOTH_HPP

#include <span>

// The interface between the .cpp and the .cu file: without Asio, which nvcc does not accept, and without CUDA.

/// Each element of `out` becomes the mean of its neighbourhood in `in`. `stream` is a cudaStream_t. Returns whether the
/// kernel was started.
bool smooth_on_gpu(std::span<const float> in, std::span<float> out, void* stream);

void smooth_on_cpu(std::span<const float> in, std::span<float> out);

#endif
