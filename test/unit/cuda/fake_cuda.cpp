#include "unit/cuda/fake_session.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace test_cuda_fake_cuda {

namespace {

using test::fake_cuda;
using test::ints;
using session = test::fake_session;

fake_cuda::settings stepped()
{
    return test::stepped_cuda();
}

} // namespace

TEST_SUITE_BEGIN("fake_cuda");

TEST_CASE("work of a stream runs in order, and only when stepped")
{
    fake_cuda fake(stepped());
    session s(fake);
    const auto p = s.allocate(16, s.first);
    CHECK(s.api.cuMemsetD32Async(p, 1, 4, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemsetD32Async(p, 2, 2, s.first) == CUDA_SUCCESS);
    CHECK(fake.pending(s.first) == 3);
    CHECK(fake.step(s.first));
    CHECK(ints(p)[0] == -1);
    CHECK(fake.step(s.first));
    CHECK(ints(p)[0] == 1);
    CHECK(s.api.cuStreamQuery(s.first) == CUDA_ERROR_NOT_READY);
    CHECK(fake.run_all() == 1);
    CHECK(ints(p)[1] == 2);
    CHECK(ints(p)[2] == 1);
    CHECK_FALSE(fake.step(s.first));
    CHECK(s.api.cuStreamQuery(s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(fake.run_all() == 1);
    CHECK(ints(p)[0] == static_cast<int>(0xdddddddd));
}

TEST_CASE("an event has passed when its latest record has run")
{
    fake_cuda fake(stepped());
    session s(fake);
    CUevent e = s.event();
    CHECK(s.api.cuEventQuery(e) == CUDA_SUCCESS);
    CHECK(s.api.cuEventRecord(e, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuEventQuery(e) == CUDA_ERROR_NOT_READY);
    CHECK(s.api.cuStreamWaitEvent(s.second, e, 0) == CUDA_SUCCESS);
    CHECK(s.api.cuEventRecord(e, s.first) == CUDA_SUCCESS);
    // The wait refers to the last record before the call.
    CHECK_FALSE(fake.step(s.second));
    CHECK(fake.step(s.first));
    CHECK(s.api.cuEventQuery(e) == CUDA_ERROR_NOT_READY);
    CHECK(fake.step(s.second));
    CHECK(s.api.cuEventSynchronize(e) == CUDA_SUCCESS);
    CHECK(s.api.cuEventQuery(e) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(e) == CUDA_SUCCESS);
}

TEST_CASE("streams interleave, except for waits between them")
{
    bool second_was_ahead = false;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        fake_cuda::settings how;
        how.seed = seed;
        fake_cuda fake(how);
        std::vector<int> order;
        fake.add_kernel("note", [&](const fake_cuda::launch&, void** a) { order.push_back(*static_cast<int*>(a[0])); },
                        {sizeof(int)});
        session s(fake);
        CUmodule m = nullptr;
        CUfunction f = nullptr;
        CHECK(s.api.cuModuleLoadData(&m, "image") == CUDA_SUCCESS);
        CHECK(s.api.cuModuleGetFunction(&f, m, "nothing") == CUDA_ERROR_NOT_FOUND);
        CHECK(s.api.cuModuleGetFunction(&f, m, "note") == CUDA_SUCCESS);
        CUevent e = s.event();
        auto note = [&](CUstream where, int n) {
            void* arguments[] = {&n};
            CHECK(s.api.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, where, arguments, nullptr) == CUDA_SUCCESS);
        };
        fake.hold_all(true);
        for (int i = 0; i < 4; ++i) {
            note(s.first, i);
            note(s.second, 10 + i);
        }
        CHECK(s.api.cuEventRecord(e, s.first) == CUDA_SUCCESS);
        CHECK(s.api.cuStreamWaitEvent(s.second, e, 0) == CUDA_SUCCESS);
        note(s.second, 20);
        fake.hold_all(false);
        CHECK(s.api.cuStreamSynchronize(s.second) == CUDA_SUCCESS);
        REQUIRE(order.size() == 9);
        CHECK(order.back() == 20);
        second_was_ahead |= order.front() == 10;
        auto of = [&](int from) {
            std::vector<int> some;
            std::ranges::copy_if(order, std::back_inserter(some), [&](int n) { return n >= from && n < from + 10; });
            return some;
        };
        CHECK(of(0) == std::vector<int>{0, 1, 2, 3});
        CHECK(of(10) == std::vector<int>{10, 11, 12, 13});
        CHECK(s.api.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s.first, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
        CHECK(s.api.cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, s.first, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
        std::size_t offset = 7, size = 0;
        CHECK(s.api.cuFuncGetParamInfo(f, 0, &offset, &size) == CUDA_SUCCESS);
        CHECK(offset == 0);
        CHECK(size == sizeof(int));
        CHECK(s.api.cuFuncGetParamInfo(f, 1, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
        CHECK(s.api.cuModuleUnload(m) == CUDA_SUCCESS);
        CHECK(s.api.cuEventDestroy(e) == CUDA_SUCCESS);
    }
    CHECK(second_was_ahead);
}

TEST_CASE("a host function runs in stream order, on a driver thread")
{
    fake_cuda fake(stepped());
    session s(fake);
    std::thread::id where;
    CHECK(s.api.cuLaunchHostFunc(
              s.first, [](void* p) { *static_cast<std::thread::id*>(p) = std::this_thread::get_id(); }, &where) ==
          CUDA_SUCCESS);
    CHECK(where == std::thread::id());
    CHECK(fake.step(s.first));
    CHECK(where != std::thread::id());
    CHECK(where != std::this_thread::get_id());
    where = {};
    fake.swallow_host_functions(true);
    CHECK(s.api.cuLaunchHostFunc(
              s.first, [](void* p) { *static_cast<std::thread::id*>(p) = std::this_thread::get_id(); }, &where) ==
          CUDA_SUCCESS);
    CHECK(fake.run_all() == 1);
    CHECK(where == std::thread::id());
    CHECK(fake.host_functions_called() == 1);
}

TEST_CASE("a blocked stream does not block other streams")
{
    fake_cuda fake;
    session s(fake);
    std::atomic<bool> open{false};
    fake.block(s.first, [&] { return open.load(); });
    CUevent behind = s.event(), elsewhere = s.event();
    CHECK(s.api.cuEventRecord(behind, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuEventRecord(elsewhere, s.second) == CUDA_SUCCESS);
    CHECK(s.api.cuEventSynchronize(elsewhere) == CUDA_SUCCESS);
    CHECK(s.api.cuEventQuery(behind) == CUDA_ERROR_NOT_READY);
    open = true;
    CHECK(s.api.cuEventSynchronize(behind) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(behind) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(elsewhere) == CUDA_SUCCESS);
}

TEST_CASE("copies take page-locked and managed memory, and access it when they run")
{
    fake_cuda fake(stepped());
    session s(fake);
    std::vector<int> host(4);
    CHECK(s.api.cuMemHostRegister(host.data(), 16, 0) == CUDA_SUCCESS);
    CHECK(s.api.cuMemHostRegister(host.data() + 1, 4, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK(fake.registered() == 16);
    CUdeviceptr managed = 0;
    CHECK(s.api.cuMemAllocManaged(&managed, 16, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    const auto p = s.allocate(16, s.first);
    CHECK(s.api.cuMemcpyHtoDAsync(p, host.data(), 16, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemcpyDtoDAsync(managed, p, 16, s.first) == CUDA_SUCCESS);
    CHECK(s.api.prefetch(managed, 16, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, s.first) == CUDA_SUCCESS);
    std::iota(host.begin(), host.end(), 5);
    CHECK(s.api.cuStreamSynchronize(s.first) == CUDA_SUCCESS);
    CHECK(ints(managed)[3] == 8);
    unsigned type = 0, is_managed = 0;
    void* answers[] = {&type, &is_managed};
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
    CHECK(s.api.cuPointerGetAttributes(2, asked, answers, managed) == CUDA_SUCCESS);
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CHECK(is_managed == 1);
    CHECK(s.api.cuPointerGetAttributes(2, asked, answers, reinterpret_cast<CUdeviceptr>(&host[1])) == CUDA_SUCCESS);
    CHECK(type == CU_MEMORYTYPE_HOST);
    CHECK(s.api.cuPointerGetAttributes(2, asked, answers, reinterpret_cast<CUdeviceptr>(&type)) == CUDA_SUCCESS);
    CHECK(type == 0);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuMemFree(managed) == CUDA_SUCCESS);
    CHECK(s.api.cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
    CHECK(fake.allocated() == 0);
}

TEST_CASE("a pool counts its memory, keeps its limit and can be trimmed")
{
    fake_cuda fake;
    session s(fake);
    auto attribute = [&](CUmemPool_attribute a) {
        cuuint64_t value = 0;
        CHECK(s.api.cuMemPoolGetAttribute(s.pool, a, &value) == CUDA_SUCCESS);
        return value;
    };
    std::size_t before = 0, free = 0, total = 0;
    CHECK(s.api.cuMemGetInfo(&before, &total) == CUDA_SUCCESS);
    const auto p = s.allocate(5 << 20, s.first);
    CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 5 << 20);
    CHECK(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 6 << 20);
    CHECK(s.api.cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    CHECK(before - free == 6 << 20);
    CUdeviceptr more = 0;
    CHECK(s.api.cuMemAllocFromPoolAsync(&more, 5 << 20, s.pool, s.first) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
    CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
    CHECK(attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 5 << 20);
    CHECK(s.api.cuMemPoolTrimTo(s.pool, 0) == CUDA_SUCCESS);
    CHECK(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
}

TEST_CASE("errors that the real driver detects only sometimes are always violations")
{
    fake_cuda fake(stepped());
    std::size_t expected = 0;
    auto violated = [&](std::string_view what) {
        const auto all = fake.violations();
        REQUIRE(all.size() == ++expected);
        CHECK_MESSAGE(all.back().find(what) != std::string::npos, all.back());
    };
    CUevent e = nullptr;
    CHECK(fake.api().cuEventCreate(&e, 0) == CUDA_ERROR_INVALID_CONTEXT);
    violated("without a current context");
    {
        session s(fake);
        const auto p = s.allocate(16, s.first);
        CHECK(s.api.cuMemsetD8Async(p, 0, 17, s.first) != CUDA_SUCCESS);
        violated("beyond its memory");
        CHECK(s.api.cuMemsetD8Async(p, 0, 16, s.second) == CUDA_SUCCESS);
        CHECK(fake.step(s.second));
        violated("before its allocation");
        int pageable = 0;
        CHECK(s.api.cuMemcpyHtoDAsync(p, &pageable, 4, s.first) != CUDA_SUCCESS);
        violated("not page-locked");
        CHECK(fake.step(s.first));
        CHECK(s.api.cuMemsetD8Async(p, 0, 16, s.second) == CUDA_SUCCESS);
        CHECK(s.api.cuMemFreeAsync(p, s.first) == CUDA_SUCCESS);
        CHECK(s.api.cuMemsetD8Async(p, 0, 16, s.first) != CUDA_SUCCESS);
        violated("was freed");
        CHECK(s.api.cuMemFreeAsync(p, s.first) != CUDA_SUCCESS);
        violated("was freed");
        CHECK(fake.step(s.first));
        CHECK(fake.step(s.second));
        violated("was freed");
        const auto q = s.allocate(4, s.first);
        CHECK(fake.step(s.first));
        CHECK(fake.touch(ints(q), 4));
        CHECK_FALSE(fake.touch(&pageable, 4));
        violated("not memory of the device");
        reinterpret_cast<int*>(q)[1] = 0;
        CHECK(s.api.cuMemFreeAsync(q, s.first) == CUDA_SUCCESS);
        CHECK(fake.step(s.first));
        violated("wrote beyond");
        e = s.event();
        CHECK(s.api.cuEventDestroy(e) == CUDA_SUCCESS);
        CHECK(s.api.cuEventDestroy(e) == CUDA_ERROR_INVALID_HANDLE);
        violated("unknown event");
        CHECK(s.api.cuMemHostUnregister(&pageable) != CUDA_SUCCESS);
        violated("not registered");
        CHECK(s.api.cuLaunchHostFunc(
                  s.first, [](void* api) { (void)static_cast<const coaccel::cuda::driver_api*>(api)->cuInit(0); },
                  const_cast<coaccel::cuda::driver_api*>(&s.api)) == CUDA_SUCCESS);
        CHECK(fake.step(s.first));
        violated("from a host function");
        e = s.event();
        s.allocate(4, s.first);
    }
    violated("1 events left");
    CHECK(fake.leaks() == std::vector<std::string>{"1 blocks of memory"});
    CHECK(fake.verdict().find("left behind") != std::string::npos);
}

TEST_CASE("an injected failure of a call happens once")
{
    fake_cuda fake;
    session s(fake);
    CHECK(fake.calls("cuEventCreate") == 0);
    fake.fail("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY, 2);
    CUevent one = s.event();
    CUevent two = nullptr;
    CHECK(s.api.cuEventCreate(&two, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    two = s.event();
    CHECK(fake.calls("cuEventCreate") == 3);
    CHECK(s.api.cuEventDestroy(one) == CUDA_SUCCESS);
    CHECK(s.api.cuEventDestroy(two) == CUDA_SUCCESS);
    CHECK(fake.current_depth() == 1);
}

TEST_CASE("after a fatal kernel nothing runs, and everything fails")
{
    fake_cuda fake;
    session s(fake);
    std::atomic<int> called{0};
    CUevent e = s.event();
    fake.hold_all(true);
    fake.enqueue(s.first, [&] { fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS); });
    CHECK(s.api.cuEventRecord(e, s.first) == CUDA_SUCCESS);
    CHECK(s.api.cuLaunchHostFunc(
              s.first, [](void* p) { ++*static_cast<std::atomic<int>*>(p); }, &called) == CUDA_SUCCESS);
    fake.hold_all(false);
    CHECK(s.api.cuEventSynchronize(e) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(fake.calls_after_death() == 0);
    CHECK(s.api.cuEventQuery(e) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(fake.calls_after_death() == 1);
    CUcontext other = nullptr;
    CHECK(s.api.cuDevicePrimaryCtxRetain(&other, 0) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(s.api.cuCtxPopCurrent(&other) == CUDA_SUCCESS);
    CHECK(fake.calls_after_death() == 2);
    CHECK(called == 0);
    CHECK(fake.verdict() == "");
}

TEST_CASE("the primary context of a device is one for all who retain it, until the last has released it")
{
    fake_cuda fake({.devices = 2});
    const auto& api = fake.api();
    CUcontext one = nullptr, same = nullptr, other = nullptr;
    CHECK(api.cuDevicePrimaryCtxRetain(&one, 0) == CUDA_SUCCESS);
    CHECK(api.cuDevicePrimaryCtxRetain(&same, 0) == CUDA_SUCCESS);
    CHECK(api.cuDevicePrimaryCtxRetain(&other, 1) == CUDA_SUCCESS);
    CHECK(api.cuDevicePrimaryCtxRetain(&other, 2) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(one == same);
    CHECK(one != other);
    CHECK(fake.current_context() == nullptr);
    CHECK(fake.leaks() == std::vector<std::string>{"3 retained contexts"});
    CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
    CHECK(api.cuCtxPushCurrent(one) == CUDA_SUCCESS);
    CHECK(fake.current_context() == one);
    CUstream left = nullptr;
    CHECK(api.cuStreamCreateWithPriority(&left, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    CUcontext popped = nullptr;
    CHECK(api.cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    CHECK(api.cuDevicePrimaryCtxRelease(1) == CUDA_SUCCESS);
    CHECK(fake.violations().empty());
    CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
    CHECK(fake.violations() == std::vector<std::string>{"cuDevicePrimaryCtxRelease with 1 streams left"});
    CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(fake.violations().size() == 2);
    CHECK(fake.leaks().empty());
}

TEST_CASE("after a reset of the primary context calls fail as on hardware")
{
    fake_cuda fake;
    session s(fake);
    CUevent e = s.event();
    fake.reset_context();
    CHECK(s.api.cuEventQuery(e) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(s.api.cuStreamQuery(s.first) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(s.api.cuEventRecord(e, s.first) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(s.api.cuEventCreate(&e, 0) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(fake.verdict() == "");
}

TEST_SUITE_END();

} // namespace test_cuda_fake_cuda
