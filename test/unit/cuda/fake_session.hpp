#ifndef COACCEL_TEST_UNIT_CUDA_FAKE_SESSION_HPP
#define COACCEL_TEST_UNIT_CUDA_FAKE_SESSION_HPP

#include "support/fake_cuda.hpp"

#include <doctest/doctest.h>

namespace test {

/// A current context with two streams and a pool; released at the end.
struct fake_session {
    explicit fake_session(fake_cuda& f) : fake(f), api(f.api())
    {
        REQUIRE(api.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        REQUIRE(api.cuCtxPushCurrent(context) == CUDA_SUCCESS);
        for (CUstream* s : {&first, &second})
            REQUIRE(api.cuStreamCreateWithPriority(s, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
        CUmemPoolProps properties{};
        properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        properties.maxSize = std::size_t(8) << 20;
        REQUIRE(api.cuMemPoolCreate(&pool, &properties) == CUDA_SUCCESS);
    }

    fake_session(const fake_session&) = delete;
    fake_session& operator=(const fake_session&) = delete;

    ~fake_session()
    {
        (void)api.cuStreamDestroy(first);
        (void)api.cuStreamDestroy(second);
        (void)api.cuMemPoolDestroy(pool);
        CUcontext popped = nullptr;
        (void)api.cuCtxPopCurrent(&popped);
        (void)api.cuDevicePrimaryCtxRelease(0);
    }

    CUdeviceptr allocate(std::size_t bytes, CUstream s)
    {
        CUdeviceptr made = 0;
        REQUIRE(api.cuMemAllocFromPoolAsync(&made, bytes, pool, s) == CUDA_SUCCESS);
        return made;
    }

    CUevent event()
    {
        CUevent made = nullptr;
        REQUIRE(api.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
        return made;
    }

    fake_cuda& fake;
    const coaccel::cuda::driver_api& api;
    CUcontext context = nullptr;
    CUstream first = nullptr;
    CUstream second = nullptr;
    CUmemoryPool pool = nullptr;
};

inline fake_cuda::settings stepped_cuda()
{
    fake_cuda::settings s;
    s.how = fake_cuda::mode::stepped;
    return s;
}

inline const int* ints(CUdeviceptr p)
{
    return reinterpret_cast<const int*>(p);
}

} // namespace test

#endif
