#include "unit/cuda/fake_session.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace test_cuda_fake_cuda_virtual_memory {

namespace {

using namespace test;
using session = test::fake_session;

constexpr std::size_t unit = std::size_t(2) << 20;

struct fixture {
    fixture() { how.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}; }

    CUmemAllocationProp properties(int device = 0) const
    {
        CUmemAllocationProp p{};
        p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        p.location.id = device;
        p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        return p;
    }

    CUmemGenericAllocationHandle create(std::size_t bytes = unit)
    {
        CUmemGenericAllocationHandle made = 0;
        const auto p = properties();
        REQUIRE(s.api.cuMemCreate(&made, bytes, &p, 0) == CUDA_SUCCESS);
        return made;
    }

    CUdeviceptr reserve(std::size_t bytes = unit)
    {
        CUdeviceptr made = 0;
        REQUIRE(s.api.cuMemAddressReserve(&made, bytes, 0, 0, 0) == CUDA_SUCCESS);
        return made;
    }

    CUresult set_access(CUdeviceptr p, CUmemAccess_flags flags, std::size_t bytes = unit)
    {
        how.flags = flags;
        return s.api.cuMemSetAccess(p, bytes, &how, 1);
    }

    CUdeviceptr mapped(CUmemGenericAllocationHandle h, CUmemAccess_flags flags, std::size_t bytes = unit)
    {
        const CUdeviceptr p = reserve(bytes);
        REQUIRE(s.api.cuMemMap(p, bytes, 0, h, 0) == CUDA_SUCCESS);
        REQUIRE(set_access(p, flags, bytes) == CUDA_SUCCESS);
        return p;
    }

    void release(CUdeviceptr p, std::size_t bytes = unit)
    {
        CHECK(s.api.cuMemUnmap(p, bytes) == CUDA_SUCCESS);
        CHECK(s.api.cuMemAddressFree(p, bytes) == CUDA_SUCCESS);
    }

    CUresult set(CUdeviceptr p, unsigned value)
    {
        const CUresult r = s.api.cuMemsetD32Async(p, value, 1, s.first);
        return r == CUDA_SUCCESS ? s.api.cuStreamSynchronize(s.first) : r;
    }

    fake_cuda fake{{.devices = 2, .total_memory = 16 * unit}};
    session s{fake};
    CUmemAccessDesc how{};
};

} // namespace

TEST_SUITE_BEGIN("fake_cuda");

TEST_CASE_FIXTURE(fixture, "mapped memory is kept by its handle and by its mappings, and counts as in use")
{
    std::size_t free = 0, total = 0;
    const auto h = create(2 * unit);
    CHECK(s.api.cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    CHECK(free == 14 * unit);
    const auto p = mapped(h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 2 * unit);
    const auto q = mapped(h, CU_MEM_ACCESS_FLAGS_PROT_READ, 2 * unit);
    CHECK(s.api.cuMemRelease(h) == CUDA_SUCCESS);
    CHECK(set(p, 7) == CUDA_SUCCESS);
    CHECK(*reinterpret_cast<const unsigned*>(q) == 7);
    CHECK(reinterpret_cast<const unsigned*>(q)[1] == ~0u);
    CHECK(fake.allocated() == 2 * unit);
    release(p, 2 * unit);
    CHECK(fake.allocated() == 2 * unit);
    release(q, 2 * unit);
    CHECK(fake.allocated() == 0);
    CUmemGenericAllocationHandle made = 0;
    const auto much = properties();
    CHECK(s.api.cuMemCreate(&made, 17 * unit, &much, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE_FIXTURE(fixture, "misuse of mapped memory is a violation")
{
    const auto h = create();
    const CUdeviceptr p = reserve();
    int expected = 0;
    const auto is_violation = [&](CUresult r) {
        CHECK(r != CUDA_SUCCESS);
        CHECK(fake.violations().size() == static_cast<std::size_t>(++expected));
    };
    is_violation(s.api.cuMemUnmap(p, unit));
    is_violation(set_access(p, CU_MEM_ACCESS_FLAGS_PROT_READ));
    is_violation(set(p, 1));
    is_violation(s.api.cuMemMap(p, unit, 0, h + 1, 0));
    is_violation(s.api.cuMemMap(p, 2 * unit, 0, h, 0));
    REQUIRE(s.api.cuMemMap(p, unit, 0, h, 0) == CUDA_SUCCESS);
    is_violation(s.api.cuMemMap(p, unit, 0, h, 0));
    // Without access.
    is_violation(set(p, 1));
    how.location.id = 1;
    is_violation(set_access(p, CU_MEM_ACCESS_FLAGS_PROT_READ));
    how.location.id = 0;
    REQUIRE(set_access(p, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
    is_violation(s.api.cuMemsetD8Async(p, 0, unit + 1, s.first));
    is_violation(s.api.cuMemAddressFree(p, unit));
    release(p);
    is_violation(s.api.cuMemAddressFree(p, unit));
    CHECK(s.api.cuMemRelease(h) == CUDA_SUCCESS);
    is_violation(s.api.cuMemRelease(h));
    CUmemGenericAllocationHandle made = 0;
    auto odd = properties();
    is_violation(s.api.cuMemCreate(&made, unit + 1, &odd, 0));
    odd.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    REQUIRE(s.api.cuMemCreate(&made, unit, &odd, 0) == CUDA_SUCCESS);
    int fd = -1;
    is_violation(s.api.cuMemExportToShareableHandle(&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CHECK(fake.leaks() ==
          std::vector<std::string>{"1 retained contexts", "2 streams", "1 pools", "1 handles of memory"});
    CHECK(s.api.cuMemRelease(made) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(fixture, "a write to read-only memory kills the context and changes nothing")
{
    const auto h = create();
    const auto p = mapped(h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    REQUIRE(set(p, 7) == CUDA_SUCCESS);
    REQUIRE(set_access(p, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
    CHECK(fake.touch(reinterpret_cast<void*>(p), unit));
    CHECK(set(p, 8) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(fake.dead());
    CHECK(*reinterpret_cast<const unsigned*>(p) == 7);
    CHECK(fake.violations().empty());
}

TEST_CASE("exported memory outlives the fake that made it")
{
    int fd = -1;
    {
        fixture f;
        const auto h = f.create();
        const auto p = f.mapped(h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        CHECK(f.set(p, 9) == CUDA_SUCCESS);
        REQUIRE(f.s.api.cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
                CUDA_SUCCESS);
        f.fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    fixture f;
    const auto import = [&](int from) {
        CUmemGenericAllocationHandle made = 0;
        const CUresult r =
            f.s.api.cuMemImportFromShareableHandle(&made, reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)),
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        return std::pair(r, made);
    };
    const auto h = import(fd).second;
    ::close(fd);
    const auto p = f.mapped(h, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK(*reinterpret_cast<const unsigned*>(p) == 9);
    CHECK(f.s.api.cuMemRelease(h) == CUDA_SUCCESS);
    f.release(p);
    CHECK(import(fd).first == CUDA_ERROR_INVALID_VALUE);
    const int other = ::memfd_create("other", MFD_CLOEXEC);
    CHECK(import(other).first == CUDA_ERROR_INVALID_VALUE);
    ::close(other);
}

TEST_SUITE_END();

} // namespace test_cuda_fake_cuda_virtual_memory
