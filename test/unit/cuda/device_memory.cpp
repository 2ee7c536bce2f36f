#include "cuda/memory/device_memory.hpp"

#include "cuda/driver/error.hpp"
#include "memory_support.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace test_cuda_device_memory {

namespace {

using namespace coaccel;
using cuda::device_memory;

constexpr std::size_t mib = std::size_t(1) << 20;
constexpr memory_kind kinds[] = {memory_kind::device, memory_kind::managed};

struct memory_fixture : test::fake_context {
    explicit memory_fixture(const cuda_options& o = {}, std::uint64_t total = 64 * mib, int threads = 2)
        : fake_context({.total_memory = total}, threads), memory(api, helpers, [this] { told.add(); })
    {
        pool = device_memory::make_pool(api, 0, o).value();
        memory.use(pool, growth, o);
    }

    ~memory_fixture()
    {
        helpers.stop();
        memory.destroy();
        (void)api.cuMemPoolDestroy(pool);
    }

    result<void*> allocate(std::size_t bytes, memory_kind kind = memory_kind::device)
    {
        return until_answered([&] { return memory.allocate(stream, bytes, kind); });
    }

    void release(void* p, std::size_t bytes, memory_kind kind = memory_kind::device)
    {
        CHECK(memory.release(stream, p, bytes, kind) == CUDA_SUCCESS);
    }

    memory_info info()
    {
        memory_info i;
        memory.fill(i);
        return i;
    }

    /// Checks that work on the stream may use the memory now.
    void check_usable(void* p, std::size_t bytes)
    {
        REQUIRE(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
        CHECK(fake.touch(p, bytes));
    }

    CUmemoryPool pool = nullptr;
    device_memory memory;
};

} // namespace

TEST_SUITE_BEGIN("device_memory");

TEST_CASE("after a fault, queued growth makes no driver calls")
{
    for (const memory_kind next : kinds) {
        memory_fixture f({}, 64 * mib, 1);
        f.occupy(f.gates[0]);
        CHECK(f.memory.allocate(f.stream, mib, memory_kind::device).value() == nullptr);
        CHECK(f.memory.allocate(f.stream, 2 * mib, next).value() == nullptr);
        f.fake.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_ILLEGAL_ADDRESS);
        f.gates[0].open();
        f.told.wait_for(2);
        CHECK(f.fake.dead());
        CHECK_MESSAGE(f.fake.calls_after_death() == 0, f.fake.late_calls());
        CHECK(is_context_lost(f.allocate(2 * mib, next).error()));
    }
}

TEST_CASE("the pool is created from the options, and each driver error is passed on")
{
    test::fake_context f;
    cuda_options o;
    o.release_threshold = 12345;
    CUmemoryPool pool = device_memory::make_pool(f.api, 0, o).value();
    cuuint64_t threshold = 0;
    REQUIRE(f.api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) == CUDA_SUCCESS);
    CHECK(threshold == 12345);
    REQUIRE(f.api.cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    for (const char* function : {"cuMemPoolCreate", "cuMemPoolSetAttribute"}) {
        CAPTURE(function);
        f.fake.fail(function, CUDA_ERROR_NOT_SUPPORTED);
        CHECK(device_memory::make_pool(f.api, 0, o).error() == cuda::make_error(CUDA_ERROR_NOT_SUPPORTED));
    }
}

TEST_CASE_FIXTURE(memory_fixture, "an allocation waits if the pool must grow, and succeeds at once otherwise")
{
    CHECK(memory.allocate(stream, 1000, memory_kind::device).value() == nullptr);
    told.wait_for(1);
    void* first = memory.allocate(stream, 1000, memory_kind::device).value();
    REQUIRE(first);
    check_usable(first, 1000);
    void* second = memory.allocate(stream, 1000, memory_kind::device).value();
    REQUIRE(second);
    check_usable(second, 1000);
    CHECK(told.count() == 1);
    CHECK(info().used == 2048);
    CHECK(info().reserved == 2 * mib);
    release(first, 1000);
    release(second, 1000);
    CHECK(info().used == 0);
    CHECK(info().high_water == 2048);
    CHECK(info().total == 64 * mib);
    CHECK(info().free == 62 * mib);
}

TEST_CASE_FIXTURE(memory_fixture, "requests during an allocation of memory do not allocate it again")
{
    for (const auto kind : kinds) {
        CAPTURE(int(kind));
        test::gate& gate = gates[static_cast<std::size_t>(kind)];
        occupy(gate);
        const int before = told.count();
        const int calls = fake.calls("cuMemAllocFromPoolAsync") + fake.calls("cuMemAllocManaged");
        for (int i = 0; i < 5; ++i)
            CHECK(memory.allocate(stream, mib, kind).value() == nullptr);
        gate.open();
        told.wait_for(before + 1);
        void* p = memory.allocate(stream, mib, kind).value();
        REQUIRE(p);
        CHECK(fake.calls("cuMemAllocFromPoolAsync") + fake.calls("cuMemAllocManaged") == calls + 1);
        release(p, mib, kind);
    }
}

TEST_CASE("a pool with a release threshold of zero still allocates")
{
    cuda_options o;
    o.release_threshold = 0;
    memory_fixture f(o);
    for (int i = 0; i < 20; ++i) {
        void* p = f.allocate(4 * mib).value();
        REQUIRE(p);
        f.check_usable(p, 4 * mib);
        f.release(p, 4 * mib);
        REQUIRE(f.api.cuStreamSynchronize(f.stream) == CUDA_SUCCESS);
    }
    CHECK(f.info().reserved == 0);
}

TEST_CASE("the limit is exact to the granule and covers both kinds together")
{
    cuda_options o;
    o.memory_limit = 4 * mib;
    memory_fixture f(o);
    CHECK(f.allocate(4 * mib + 1).error() == errc::out_of_memory);
    CHECK(f.allocate(4 * mib + 1, memory_kind::managed).error() == errc::out_of_memory);
    void* a = f.allocate(2 * mib - 511).value();
    void* b = f.allocate(mib, memory_kind::managed).value();
    void* c = f.allocate(mib).value();
    CHECK(f.info().used == 4 * mib);
    CHECK(f.allocate(1).error() == errc::out_of_memory);
    CHECK(f.allocate(1, memory_kind::managed).error() == errc::out_of_memory);
    f.release(c, mib);
    CHECK(f.allocate(1, memory_kind::managed).value() != nullptr);
    CHECK(f.allocate(mib).error() == errc::out_of_memory);
    CHECK(f.allocate(mib - 512).value() != nullptr);
    f.release(a, 2 * mib - 511);
    f.release(b, mib, memory_kind::managed);
    CHECK(f.info().high_water == 4 * mib);
}

TEST_CASE("out of memory is reported after one trim")
{
    for (const auto kind : kinds) {
        CAPTURE(int(kind));
        memory_fixture f({}, 8 * mib);
        void* p = f.allocate(6 * mib, kind).value();
        REQUIRE(p);
        const int trims = f.fake.calls("cuMemPoolTrimTo");
        CHECK(f.allocate(4 * mib, kind).error() == errc::out_of_memory);
        CHECK(f.fake.calls("cuMemPoolTrimTo") == trims + 1);
        f.release(p, 6 * mib, kind);
        // Cached memory does not count against the limit.
        for (const auto other : kinds) {
            CAPTURE(int(other));
            void* q = f.allocate(7 * mib, other).value();
            REQUIRE(q);
            f.release(q, 7 * mib, other);
        }
    }
}

TEST_CASE_FIXTURE(memory_fixture, "a fragmented pool is handled like an exhausted one")
{
    release(allocate(mib).value(), mib);
    fake.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
    const int before = told.count();
    CHECK(memory.allocate(stream, 512, memory_kind::device).value() == nullptr);
    told.wait_for(before + 1);
    void* p = memory.allocate(stream, 512, memory_kind::device).value();
    REQUIRE(p);
    release(p, 512);
}

TEST_CASE("each driver error fails one request")
{
    struct row {
        const char* function;
        memory_kind kind;
    };
    const row rows[] = {
        {"cuMemAllocFromPoolAsync", memory_kind::device},
        {"cuMemAllocManaged", memory_kind::managed},
    };
    for (const auto& r : rows) {
        CAPTURE(r.function);
        memory_fixture f;
        f.fake.fail(r.function, CUDA_ERROR_NOT_PERMITTED);
        CHECK(f.allocate(mib, r.kind).error() == cuda::make_error(CUDA_ERROR_NOT_PERMITTED));
        void* p = f.allocate(mib, r.kind).value();
        REQUIRE(p);
        f.release(p, mib, r.kind);
    }
    memory_fixture f;
    f.release(f.allocate(mib).value(), mib);
    f.fake.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_NOT_PERMITTED);
    CHECK(f.allocate(512).error() == cuda::make_error(CUDA_ERROR_NOT_PERMITTED));
    // If the reserved size is unknown, the memory is requested from the driver.
    f.fake.fail("cuMemPoolGetAttribute", CUDA_ERROR_NOT_PERMITTED);
    void* p = f.allocate(512).value();
    REQUIRE(p);
    f.fake.fail("cuMemFreeAsync", CUDA_ERROR_NOT_PERMITTED);
    CHECK(f.memory.release(f.stream, p, 512, memory_kind::device) == CUDA_ERROR_NOT_PERMITTED);
    REQUIRE(f.api.cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(p), f.stream) == CUDA_SUCCESS);
    f.fake.fail("cuMemGetInfo", CUDA_ERROR_NOT_PERMITTED);
    CHECK(f.info().total == 0);
}

TEST_CASE_FIXTURE(memory_fixture, "memory is freed if waiting for its allocation fails")
{
    fake.fail("cuStreamSynchronize", CUDA_ERROR_NOT_PERMITTED);
    CHECK(memory.allocate(stream, mib, memory_kind::device).value() == nullptr);
    told.wait_for(1);
    REQUIRE(api.cuStreamSynchronize(growth) == CUDA_SUCCESS);
    CHECK(fake.allocated() == 0);
}

TEST_CASE("the destruction of the pool frees memory that buffers still hold")
{
    for (const auto kind : kinds) {
        memory_fixture f;
        CHECK(f.allocate(mib, kind).value() != nullptr);
        CHECK(f.fake.allocated() == mib);
        f.helpers.stop();
        f.memory.destroy();
        CHECK(f.fake.allocated() == 0);
    }
}

TEST_CASE_FIXTURE(memory_fixture, "managed memory is reused by the next request of its size, until it is trimmed")
{
    constexpr auto managed = memory_kind::managed;
    void* p = allocate(mib, managed).value();
    std::memset(p, 1, mib);
    CHECK(info().used == mib);
    CHECK(info().reserved == mib);
    release(p, mib, managed);
    CHECK(info().used == 0);
    CHECK(info().reserved == mib);
    CHECK(memory.allocate(stream, mib, managed).value() == p);
    CHECK(memory.allocate(stream, 2 * mib, managed).value() == nullptr);
    told.wait_for(2);
    void* q = memory.allocate(stream, 2 * mib, managed).value();
    REQUIRE(q);
    release(q, 2 * mib, managed);
    memory.trim();
    CHECK(info().reserved == mib);
    CHECK(fake.calls("cuMemFree") == 1);
    release(p, mib, managed);
    memory.trim();
    CHECK(info().reserved == 0);
}

TEST_CASE("unused managed memory is cached only up to a bound")
{
    memory_fixture f({}, 4096 * mib);
    // Different sizes, so that no block can be reused for the next.
    for (std::size_t i = 0; i < 12; ++i) {
        const std::size_t bytes = 40 * mib + i * 512;
        f.release(f.allocate(bytes, memory_kind::managed).value(), bytes, memory_kind::managed);
        CHECK(f.info().reserved <= 320 * mib);
    }
    CHECK(f.fake.calls("cuMemFree") > 0);
}

TEST_CASE("managed memory beyond the cache bound is freed soon after its release, off the executor")
{
    memory_fixture f({}, 4096 * mib);
    constexpr auto managed = memory_kind::managed;
    void* small = f.allocate(mib, managed).value();
    void* large = f.allocate(1024 * mib, managed).value();
    f.release(small, mib, managed);
    f.occupy(f.gates[0]);
    f.release(large, 1024 * mib, managed);
    CHECK(f.fake.calls("cuMemFree") == 0);
    f.gates[0].open();
    while (f.fake.allocated() != mib)
        std::this_thread::yield();
    CHECK(f.info().reserved == mib);
    CHECK(f.info().used == 0);
    CHECK(f.memory.allocate(f.stream, mib, managed).value() == small);
}

TEST_CASE("managed memory beyond the cache bound can be reused until it is freed")
{
    memory_fixture f({}, 4096 * mib);
    constexpr auto managed = memory_kind::managed;
    void* p = f.allocate(1024 * mib, managed).value();
    f.occupy(f.gates[0]);
    f.release(p, 1024 * mib, managed);
    CHECK(f.memory.allocate(f.stream, 1024 * mib, managed).value() == p);
    f.gates[0].open();
    f.helpers.stop();
    CHECK(f.fake.calls("cuMemFree") == 0);
    CHECK(f.info().used == 1024 * mib);
    // Without a thread to free it, the memory is kept until the end.
    f.release(p, 1024 * mib, managed);
    CHECK(f.info().reserved == 1024 * mib);
}

TEST_CASE("managed memory allocated for a waiting request is kept for it, whatever its size")
{
    memory_fixture f({}, 4096 * mib);
    constexpr auto managed = memory_kind::managed;
    void* p = f.allocate(512 * mib, managed).value();
    const int before = f.told.count();
    CHECK(f.memory.allocate(f.stream, 1024 * mib, managed).value() == nullptr);
    f.told.wait_for(before + 1);
    f.release(p, 512 * mib, managed);
    while (f.fake.allocated() != 1024 * mib)
        std::this_thread::yield();
    CHECK(f.memory.allocate(f.stream, 1024 * mib, managed).value() != nullptr);
}

TEST_CASE("small buffers are cached only up to the release threshold")
{
    struct row {
        std::uint64_t threshold;
        std::uint64_t kept;
    };
    for (const auto& r : {row{0, 0}, row{3 * mib, 2 * mib}, row{~std::uint64_t(0), 8 * mib}}) {
        CAPTURE(r.threshold);
        cuda_options o;
        o.release_threshold = r.threshold;
        memory_fixture f(o);
        std::vector<void*> all;
        for (int i = 0; i < 4; ++i)
            all.push_back(f.allocate(2 * mib).value());
        for (void* p : all)
            CHECK(f.memory.release(f.stream, p, 2 * mib, memory_kind::device, device_memory::last_use::unused) ==
                  CUDA_SUCCESS);
        REQUIRE(f.api.cuStreamSynchronize(f.stream) == CUDA_SUCCESS);
        CHECK(f.fake.allocated() == r.kept);
        CHECK(f.info().reserved <= r.threshold);
    }
}

TEST_CASE_FIXTURE(memory_fixture,
                  "trim releases the pool's unused memory, including memory for a request that was not repeated")
{
    void* p = allocate(mib).value();
    release(allocate(8 * mib).value(), 8 * mib);
    CHECK(memory.allocate(stream, 16 * mib, memory_kind::device).value() == nullptr);
    told.wait_for(3);
    CHECK(info().reserved >= 16 * mib);
    memory.trim();
    CHECK(info().reserved == 2 * mib);
    release(p, mib);
}

TEST_CASE_FIXTURE(memory_fixture, "without a helper thread the pool does not grow")
{
    release(allocate(512).value(), 512);
    helpers.stop();
    CHECK(memory.allocate(stream, 512, memory_kind::device).value() != nullptr);
    CHECK(memory.allocate(stream, 32 * mib, memory_kind::device).error() == errc::out_of_memory);
    CHECK(memory.allocate(stream, 512, memory_kind::managed).error() == errc::out_of_memory);
}

TEST_SUITE_END();

} // namespace test_cuda_device_memory
