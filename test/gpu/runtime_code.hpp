#ifndef COACCEL_TEST_GPU_RUNTIME_CODE_HPP
#define COACCEL_TEST_GPU_RUNTIME_CODE_HPP

#include "fault_kernels.hpp"
#include "gpu.hpp"

#include <cuda_runtime_api.h>
#include <memory>
#include <vector>

namespace test {

/// Code of the CUDA runtime in the same process: a stream, events and memory of its own.
struct runtime_code {
    runtime_code()
    {
        REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
        for (cudaEvent_t* e : {&first, &second})
            REQUIRE(cudaEventCreateWithFlags(e, cudaEventDisableTiming) == cudaSuccess);
    }
    runtime_code(const runtime_code&) = delete;
    runtime_code& operator=(const runtime_code&) = delete;

    ~runtime_code()
    {
        CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
        for (cudaEvent_t e : {first, second})
            CHECK(cudaEventDestroy(e) == cudaSuccess);
        CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    }

    /// Memory from cudaMalloc, freed when its last owner is destroyed.
    static std::shared_ptr<float> allocate(std::size_t count)
    {
        void* p = nullptr;
        REQUIRE(cudaMalloc(&p, count * sizeof(float)) == cudaSuccess);
        return {static_cast<float*>(p), [](float* m) { (void)cudaFree(m); }};
    }

    static std::vector<float> content(const float* memory, std::size_t count)
    {
        std::vector<float> data(count);
        CHECK(cudaMemcpy(data.data(), memory, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
        return data;
    }

    /// Every byte of the memory becomes `byte`, on the stream.
    void set(float* memory, int byte, std::size_t count) const
    {
        CHECK(cudaMemsetAsync(memory, byte, count * sizeof(float), stream) == cudaSuccess);
    }

    cudaStream_t stream = nullptr;
    cudaEvent_t first = nullptr;
    cudaEvent_t second = nullptr;
};

} // namespace test

#endif
