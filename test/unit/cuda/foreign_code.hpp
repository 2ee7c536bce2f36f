#ifndef COACCEL_TEST_UNIT_CUDA_FOREIGN_CODE_HPP
#define COACCEL_TEST_UNIT_CUDA_FOREIGN_CODE_HPP

#include "cuda_world.hpp"

#include <coaccel/ops/interop.hpp>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

namespace test {

using adoption = manual<coaccel::detail::adopt_request<float>>;
using wait_op = exec<coaccel::interop::wait_event<float>>;
using record_op = exec<coaccel::interop::record_event<float>>;

/// Other CUDA code in the process: a stream, a pool, and events in the primary context of a GPU.
class foreign_code {
public:
    explicit foreign_code(fake_cuda& driver, CUdevice gpu = 0) : fake(driver), api(driver.api()), gpu_(gpu)
    {
        CUcontext primary = nullptr;
        REQUIRE(api.cuDevicePrimaryCtxRetain(&primary, gpu_) == CUDA_SUCCESS);
        REQUIRE(api.cuCtxPushCurrent(primary) == CUDA_SUCCESS);
        REQUIRE(api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = gpu_;
        REQUIRE(api.cuMemPoolCreate(&pool_, &properties) == CUDA_SUCCESS);
    }
    foreign_code(const foreign_code&) = delete;
    foreign_code& operator=(const foreign_code&) = delete;

    ~foreign_code()
    {
        // No calls to a dead context.
        if (fake.dead())
            return;
        if (event)
            (void)api.cuEventDestroy(event);
        (void)api.cuStreamSynchronize(stream);
        (void)api.cuStreamDestroy(stream);
        (void)api.cuMemPoolDestroy(pool_);
        CUcontext popped = nullptr;
        (void)api.cuCtxPopCurrent(&popped);
        (void)api.cuDevicePrimaryCtxRelease(gpu_);
    }

    float* allocate(std::size_t count)
    {
        CUdeviceptr made = 0;
        REQUIRE(api.cuMemAllocFromPoolAsync(&made, count * sizeof(float), pool_, stream) == CUDA_SUCCESS);
        REQUIRE(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
        return reinterpret_cast<float*>(made);
    }

    void free(void* memory)
    {
        CHECK(api.cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(memory), stream) == CUDA_SUCCESS);
        CHECK(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    }

    /// Memory that is freed when its last owner is destroyed.
    std::shared_ptr<void> owned(std::size_t count)
    {
        return {allocate(count), [this](void* memory) {
                    free(memory);
                    ++frees;
                }};
    }

    CUevent make_event()
    {
        REQUIRE(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
        return event;
    }

    /// Fills memory on the stream of this code.
    void fill(float* memory, float value, std::size_t count)
    {
        CHECK(fake.enqueue(stream, [=] { std::fill_n(memory, count, value); }) == CUDA_SUCCESS);
    }

    fake_cuda& fake;
    const coaccel::cuda::driver_api& api;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    int frees = 0;

private:
    CUdevice gpu_;
    CUmemoryPool pool_ = nullptr;
};

/// Adopts memory, and returns its ref.
inline coaccel::ref<float> adopt(context_driver& d, void* memory, std::size_t count, std::shared_ptr<void> owner = {})
{
    adoption r(static_cast<float*>(memory), count, std::move(owner));
    REQUIRE_FALSE(d.outcome_of(r));
    return std::get<1>(r.take()).ref();
}

} // namespace test

#endif
