#include "cuda/memory/pinned_pool.hpp"

#include "cuda/driver/error.hpp"
#include "memory_support.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace test_cuda_pinned_pool {

namespace {

using namespace coaccel;
using cuda::pinned_pool;
using context_end = pinned_pool::context_end;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
/// The reserve of a limit that is not large.
constexpr std::size_t least_reserve = 2 * mib;

struct pool_fixture : test::fake_context {
    explicit pool_fixture(std::uint64_t limit = 64 * mib) : pool(std::in_place, api, helpers, limit)
    {
        pool->listen(told.call());
    }

    ~pool_fixture()
    {
        helpers.stop();
        pool.reset();
    }

    result<void*> allocate(std::size_t bytes)
    {
        return until_answered([&] { return pool->try_allocate(bytes); });
    }

    bool registered(const void* p)
    {
        unsigned type = 0;
        CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
        void* values[] = {&type};
        CHECK(api.cuPointerGetAttributes(1, which, values, reinterpret_cast<CUdeviceptr>(p)) == CUDA_SUCCESS);
        return type == CU_MEMORYTYPE_HOST;
    }

    std::optional<pinned_pool> pool;
};

} // namespace

TEST_SUITE_BEGIN("pinned_pool");

TEST_CASE("memory that is kept does not count towards the limit")
{
    pool_fixture f(2 * least_reserve);
    void* kept = f.pool->allocate_to_keep(8 * mib).value();
    CHECK(f.registered(kept));
    std::memset(kept, 0xab, 8 * mib);
    CHECK(f.pool->used() == 8 * mib);
    CHECK(f.pool->reserved() == 8 * mib);
    void* other = f.allocate(least_reserve).value();
    CHECK(other != nullptr);
    f.pool->release(other);
    f.pool->release_kept(kept);
    CHECK(f.pool->used() == 0);
    f.fake.fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(f.pool->allocate_to_keep(1).error() == errc::out_of_memory);
}

TEST_CASE_FIXTURE(pool_fixture, "memory that is kept is returned with the pool")
{
    std::memset(pool->allocate_to_keep(1).value(), 1, cuda::pinned_slabs::page);
    pool->detach(context_end::healthy);
    CHECK(fake.registered() == 0);
    CHECK(pool->allocate_to_keep(1).error() == errc::context_lost);
}

TEST_CASE_FIXTURE(pool_fixture,
                  "the first request allocates memory on another thread, and later requests use that memory")
{
    CHECK(pool->try_allocate(1000).value() == nullptr);
    told.wait_for(1);
    void* first = pool->try_allocate(1000).value();
    REQUIRE(first);
    CHECK(registered(first));
    std::memset(first, 0xab, 1000);
    void* second = pool->try_allocate(700).value();
    REQUIRE(second);
    CHECK(second != first);
    CHECK(fake.calls("cuMemHostRegister") == 1);
    CHECK(told.count() == 1);
    CHECK(pool->used() == 2048);
    CHECK(pool->reserved() == 2 * mib);
    CHECK(fake.registered() == 2 * mib);
    pool->release(first);
    pool->release(second);
    CHECK(pool->used() == 0);
    CHECK(told.count() == 1);
}

TEST_CASE_FIXTURE(pool_fixture, "requests during an allocation do not allocate again")
{
    occupy(gates[0]);
    for (int i = 0; i < 10; ++i)
        CHECK(pool->try_allocate(64).value() == nullptr);
    gates[0].open();
    told.wait_for(1);
    CHECK(pool->try_allocate(64).value() != nullptr);
    CHECK(fake.calls("cuMemHostRegister") == 1);
}

TEST_CASE("a request above the limit is refused at once, and others wait for a release")
{
    pool_fixture f(8 * mib + least_reserve);
    CHECK(f.pool->try_allocate(8 * mib + 1).error() == errc::out_of_memory);
    void* all = f.allocate(8 * mib).value();
    const int before = f.told.count();
    CHECK(f.pool->try_allocate(1).value() == nullptr);
    CHECK(f.pool->try_allocate(8 * mib).value() == nullptr);
    CHECK(f.told.count() == before);
    f.pool->release(all);
    CHECK(f.told.count() == before + 1);
    // The unused slab is given up for one of another size.
    void* little = f.allocate(1).value();
    CHECK(f.fake.calls("cuMemHostUnregister") == 1);
    CHECK(f.pool->reserved() <= 8 * mib);
    f.pool->release(little);
    CHECK(f.allocate(8 * mib).value() != nullptr);
    CHECK(f.fake.registered() == 8 * mib);
}

TEST_CASE("the reserve grows with the limit")
{
    struct row {
        std::uint64_t limit;
        std::uint64_t reserve;
    };
    const row rows[] = {
        {0, 0},
        {4096, 4096},
        {8191, 8191},
        {8192, 4096},
        {1 * mib, 512 * kib},
        {4 * mib, 2 * mib},
        {16 * mib, 2 * mib},
        {64 * mib, 8 * mib},
        {512 * mib, 16 * mib},
        {~std::uint64_t(0), 16 * mib},
    };
    for (const auto& r : rows) {
        CAPTURE(r.limit);
        CHECK(pinned_pool::reserve_of(r.limit) == r.reserve);
    }
}

TEST_CASE("the reserve serves copies and results while users hold all other memory")
{
    for (const std::uint64_t limit : {std::uint64_t(8 * kib), std::uint64_t(4 * mib), std::uint64_t(64 * mib)}) {
        CAPTURE(limit);
        pool_fixture f(limit);
        const std::uint64_t reserve = pinned_pool::reserve_of(limit);
        CHECK(f.allocate(limit - reserve + 1).error() == errc::out_of_memory);
        void* all = f.allocate(limit - reserve).value();
        CHECK(f.pool->try_allocate(1).value() == nullptr);
        CHECK(f.pool->try_allocate_own(reserve + 1).error() == errc::out_of_memory);
        for (const std::size_t bytes : {std::size_t(64), std::size_t(4 * kib), std::size_t(reserve)}) {
            CAPTURE(bytes);
            void* own = f.until_answered([&] { return f.pool->try_allocate_own(bytes); }).value();
            REQUIRE(own);
            CHECK(f.registered(own));
            f.pool->release(own);
        }
        CHECK(f.fake.registered() <= limit);
        f.pool->release(all);
    }
}

TEST_CASE_FIXTURE(pool_fixture, "a release notifies only if a request waits")
{
    void* p = allocate(100).value();
    const int before = told.count();
    pool->release(p);
    CHECK(told.count() == before);
}

TEST_CASE_FIXTURE(pool_fixture, "no notification arrives after the listener is removed")
{
    pool->listen({});
    CHECK(pool->try_allocate(100).value() == nullptr);
    while (pool->reserved() == 0)
        std::this_thread::yield();
    CHECK(told.count() == 0);
}

TEST_CASE_FIXTURE(pool_fixture, "a driver error fails one request, and the next request tries again")
{
    struct row {
        CUresult says;
        error_code answer;
    };
    const row rows[] = {
        {CUDA_ERROR_OUT_OF_MEMORY, errc::out_of_memory},
        {CUDA_ERROR_INVALID_VALUE, cuda::make_error(CUDA_ERROR_INVALID_VALUE)},
    };
    for (const auto& r : rows) {
        CAPTURE(r.says);
        fake.fail("cuMemHostRegister", r.says);
        const auto failed = allocate(300 * kib);
        REQUIRE_FALSE(failed);
        CHECK(failed.error() == r.answer);
        CHECK(pool->reserved() == 0);
        CHECK(fake.registered() == 0);
        void* p = allocate(300 * kib).value();
        REQUIRE(p);
        pool->release(p);
        pool->trim();
        CHECK(pool->reserved() == 0);
    }
}

TEST_CASE_FIXTURE(pool_fixture, "memory released after a driver error satisfies the next request")
{
    std::vector<void*> all;
    for (int i = 0; i < 4; ++i)
        all.push_back(allocate(4 * mib).value());
    fake.fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
    const int before = told.count();
    CHECK(pool->try_allocate(4 * mib).value() == nullptr);
    told.wait_for(before + 1);
    pool->release(all.back());
    CHECK(pool->try_allocate(4 * mib).value() == all.back());
}

TEST_CASE_FIXTURE(pool_fixture, "trim releases unused memory")
{
    void* held = allocate(100).value();
    void* gone = allocate(6 * mib).value();
    pool->release(gone);
    CHECK(pool->reserved() == 8 * mib);
    pool->trim();
    CHECK(pool->reserved() == 2 * mib);
    CHECK(fake.registered() == 2 * mib);
    std::memset(held, 1, 100);
}

TEST_CASE("after a detach allocations fail, and held memory stays valid")
{
    for (const bool alive : {true, false}) {
        CAPTURE(alive);
        pool_fixture f;
        auto* held = static_cast<char*>(f.allocate(100).value());
        void* other = f.allocate(100 * kib).value();
        f.pool->release(f.allocate(6 * mib).value());
        const int unregistered = f.fake.calls("cuMemHostUnregister");
        f.pool->detach(alive ? context_end::healthy : context_end::faulted);
        if (!alive)
            f.fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(f.fake.calls("cuMemHostUnregister") == unregistered + (alive ? 3 : 0));
        CHECK(f.pool->reserved() == 4 * mib);
        CHECK(f.pool->try_allocate(1).error() == errc::context_lost);
        // A pool thread may not have made its first calls yet.
        const auto calls_of_pool = [&] {
            return f.fake.calls() - f.fake.calls("cuCtxSetCurrent") - f.fake.calls("cuThreadExchangeStreamCaptureMode");
        };
        const int calls = calls_of_pool();
        const int before = f.told.count();
        std::memset(held, 1, 100);
        CHECK(held[99] == 1);
        f.pool->release(other);
        CHECK(f.pool->reserved() == 2 * mib);
        f.pool->release(held);
        CHECK(f.pool->reserved() == 0);
        f.pool->trim();
        f.pool->detach(context_end::healthy);
        CHECK(calls_of_pool() == calls);
        CHECK(f.told.count() == before);
    }
}

TEST_CASE("memory that stays registered after a hang stays mapped")
{
    pool_fixture f;
    void* held = f.allocate(100).value();
    void* unused = f.allocate(100 * kib).value();
    f.pool->release(unused);
    f.pool->detach(context_end::hung);
    f.pool->release(held);
    f.pool.reset();
    std::memset(held, 1, 100);
    std::memset(unused, 1, 100 * kib);
    CHECK(f.fake.registered() == 4 * mib);
    // So that the fake expects no orderly end.
    f.fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("slabs to be given up are unregistered even if the job that would do it is dropped")
{
    pool_fixture f(8 * mib + least_reserve);
    f.pool->release(f.allocate(8 * mib).value());
    f.occupy(f.gates[0]);
    f.gates[0].wait_for(2);
    CHECK(f.pool->try_allocate(100).value() == nullptr);
    CHECK(f.pool->reserved() == 0);
    CHECK(f.fake.registered() == 8 * mib);
    std::thread opener([&] { f.gates[0].open(); });
    f.helpers.stop();
    opener.join();
    f.pool->detach(context_end::healthy);
    CHECK(f.fake.registered() == 0);
}

TEST_CASE_FIXTURE(pool_fixture, "a job that runs after the detach makes no driver call")
{
    occupy(gates[0]);
    CHECK(pool->try_allocate(100).value() == nullptr);
    pool->detach(context_end::faulted);
    pool.reset();
    gates[0].open();
    test::told over;
    REQUIRE(helpers.run([&] { over.add(); }));
    over.wait_for(1);
    helpers.stop();
    CHECK(fake.calls("cuMemHostRegister") == 0);
    CHECK(told.count() == 0);
}

TEST_CASE("without a helper thread no memory is allocated, and unused slabs are kept")
{
    pool_fixture f(8 * mib + least_reserve);
    void* p = f.allocate(8 * mib).value();
    f.pool->release(p);
    f.helpers.stop();
    CHECK(f.pool->try_allocate(1).error() == errc::out_of_memory);
    CHECK(f.pool->reserved() == 8 * mib);
    CHECK(f.pool->try_allocate(8 * mib).value() == p);
}

TEST_CASE("many threads allocate and release during a detach")
{
    for (int round = 0; round < 10; ++round) {
        CAPTURE(round);
        pool_fixture f(16 * mib);
        std::atomic<int> taken{0};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                std::mt19937 random(t);
                std::vector<void*> held;
                for (;;) {
                    const std::size_t bytes = random() % (std::size_t(1) << (random() % 22)) + 1;
                    auto got = f.pool->try_allocate(bytes);
                    if (!got) {
                        CHECK(got.error() == errc::context_lost);
                        break;
                    }
                    if (got.value()) {
                        std::memset(got.value(), static_cast<int>(t), bytes);
                        held.push_back(got.value());
                        ++taken;
                    }
                    while (held.size() > 8 || (!got.value() && !held.empty())) {
                        f.pool->release(held.back());
                        held.pop_back();
                    }
                }
                for (void* p : held)
                    f.pool->release(p);
            });
        while (taken < 500)
            std::this_thread::yield();
        const bool alive = round % 2 == 0;
        f.pool->detach(alive ? context_end::healthy : context_end::faulted);
        for (auto& t : threads)
            t.join();
        if (!alive)
            f.fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(f.pool->used() == 0);
        CHECK(f.pool->reserved() == 0);
    }
}

TEST_SUITE_END();

} // namespace test_cuda_pinned_pool
