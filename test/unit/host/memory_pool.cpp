#include "host/memory_pool.hpp"

#include "posix/machine_limits.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <thread>
#include <unistd.h>
#include <vector>

namespace test_host_memory_pool {

namespace {

using namespace coaccel;
using host::memory_pool;

constexpr std::size_t granule = 256;
constexpr auto huge = std::numeric_limits<std::size_t>::max();

std::uint64_t resident_bytes()
{
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    statm >> size >> resident;
    REQUIRE(resident > 0);
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

} // namespace

TEST_SUITE_BEGIN("memory_pool");

TEST_CASE("memory is aligned, writable and counted")
{
    memory_pool pool(64 * granule);
    CHECK(pool.info().total == 64 * granule);
    CHECK(pool.info().used == 0);
    CHECK(pool.info().free == 64 * granule);
    std::uint64_t used = 0;
    for (const std::size_t bytes : {std::size_t(1), granule - 1, granule, granule + 1, 5 * granule}) {
        CAPTURE(bytes);
        void* memory = pool.allocate(bytes).value();
        CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
        std::memset(memory, 0xab, bytes);
        used += (bytes + granule - 1) / granule * granule;
        CHECK(pool.info().used == used);
        CHECK(pool.info().free == 64 * granule - used);
        CHECK(pool.info().total == 64 * granule);
    }
}

TEST_CASE("a limit of zero stands for the memory of the machine")
{
    memory_pool pool(0);
    CHECK(pool.info().total > std::uint64_t(1) << 20);
    CHECK(pool.info().free == pool.info().total);
    CHECK(pool.allocate(1000));
}

TEST_CASE("released memory is reused for its own size class only")
{
    memory_pool pool(64 * granule);
    void* a = pool.allocate(2 * granule).value();
    pool.release(a);
    CHECK(pool.info().used == 0);
    void* other = pool.allocate(granule).value();
    CHECK(other != a);
    CHECK(pool.allocate(2 * granule - 7).value() == a);
    CHECK(pool.info().used == 3 * granule);
}

TEST_CASE("the limit counts used memory, not cached memory")
{
    memory_pool pool(4 * granule);
    void* a = pool.allocate(3 * granule).value();
    CHECK(pool.allocate(2 * granule).error() == errc::out_of_memory);
    CHECK(pool.allocate(granule));
    CHECK(pool.allocate(1).error() == errc::out_of_memory);
    CHECK(pool.info().free == 0);
    pool.release(a);
    CHECK(pool.info().free == 3 * granule);
    CHECK(pool.info().reserved == 4 * granule);
    // The block is kept as one block of three granules, which cannot serve two.
    CHECK(pool.allocate(2 * granule));
    CHECK(pool.info().used == 3 * granule);
    CHECK(pool.info().reserved == 3 * granule);
    CHECK(pool.allocate(granule));
    CHECK(pool.allocate(1).error() == errc::out_of_memory);
    CHECK(pool.info().high_water == 4 * granule);
}

TEST_CASE("reserved memory is used and cached memory, until a trim")
{
    memory_pool pool(std::uint64_t(1) << 30);
    void* small = pool.allocate(10 * granule).value();
    void* large = pool.allocate(1 << 20).value();
    CHECK(pool.info().reserved == 10 * granule + (1 << 20));
    pool.release(small);
    pool.release(large);
    CHECK(pool.info().used == 0);
    CHECK(pool.info().reserved == 10 * granule + (1 << 20));
    pool.trim();
    CHECK(pool.info().reserved == 0);
}

TEST_CASE("the cache is bounded by the memory recently in use")
{
    constexpr std::size_t mib = 1 << 20;
    memory_pool pool(0);
    const auto cap = std::min<std::uint64_t>(coaccel::detail::usable_memory() / 16, 256 * mib);
    const auto burst = [&](std::size_t blocks) {
        std::vector<void*> all;
        for (std::size_t i = 0; i < blocks; ++i)
            all.push_back(pool.allocate(mib).value());
        for (void* memory : all)
            pool.release(memory);
    };
    // Never written to, so it costs only address space.
    burst(48);
    CHECK(pool.info().reserved == std::min<std::uint64_t>(48 * mib, cap / mib * mib));
    burst(600);
    CHECK(pool.info().reserved <= cap);
    // The recent past covers some hundreds of allocations.
    for (int i = 0; i < 1000; ++i)
        burst(1);
    CHECK(pool.info().reserved <= 16 * mib);
    CHECK(pool.info().used == 0);
}

TEST_CASE("a block is at most an eighth larger than the request")
{
    using host::size_class;
    std::size_t last = 0;
    for (std::size_t bytes = 1; bytes < size_class::largest; bytes += 1 + bytes / 37) {
        CAPTURE(bytes);
        const auto c = size_class::of(bytes);
        const std::size_t needed = (bytes + granule - 1) / granule * granule;
        CHECK(c.bytes >= needed);
        CHECK(c.bytes - needed <= needed / 8);
        CHECK(c.bytes % granule == 0);
        CHECK(c.index >= last);
        CHECK(c.index < size_class::count);
        // c.bytes is the largest size of its class, so that blocks of one class are interchangeable.
        CHECK(size_class::of(c.bytes).index == c.index);
        CHECK(size_class::of(c.bytes).bytes == c.bytes);
        if (c.bytes < size_class::largest)
            CHECK(size_class::of(c.bytes + 1).index == c.index + 1);
        last = c.index;
    }
    CHECK(size_class::of(size_class::largest).index == size_class::count - 1);
}

TEST_CASE("a failed allocation changes nothing")
{
    memory_pool pool(2 * granule);
    void* a = pool.allocate(granule).value();
    for (const std::size_t bytes :
         {2 * granule, 3 * granule, std::size_t(1) << 40, huge / 2, huge - granule, huge - 1, huge}) {
        CAPTURE(bytes);
        CHECK(pool.allocate(bytes).error() == errc::out_of_memory);
        CHECK(pool.info().used == granule);
    }
    pool.release(a);
    CHECK(pool.allocate(granule).value() == a);
}

TEST_CASE("absurd sizes fail under the machine's own limit too")
{
    memory_pool pool(0);
    for (const std::size_t bytes : {huge, huge - 1, huge - granule, huge / 2 + 1, std::size_t(1) << 62}) {
        CAPTURE(bytes);
        CHECK(pool.allocate(bytes).error() == errc::out_of_memory);
    }
    CHECK(pool.info().used == 0);
}

TEST_CASE("the destruction of the pool frees used and cached memory")
{
    // The leak checker reports blocks that are not freed.
    memory_pool pool(1 << 20);
    std::vector<void*> all;
    for (int i = 0; i < 100; ++i)
        all.push_back(pool.allocate(static_cast<std::size_t>(1 + i * 50)).value());
    for (std::size_t i = 0; i < all.size(); i += 2)
        pool.release(all[i]);
}

TEST_CASE("any number of blocks of one size can be cached")
{
    memory_pool pool(1 << 20);
    for (int round = 0; round < 3; ++round) {
        std::set<void*> all;
        for (int i = 0; i < 500; ++i)
            CHECK(all.insert(pool.allocate(100).value()).second);
        for (void* memory : all)
            pool.release(memory);
        CHECK(pool.info().used == 0);
    }
}

TEST_CASE("buffers of many sizes, one at a time, leave little cached memory")
{
    constexpr std::uint64_t mib = 1 << 20;
    constexpr std::uint64_t little = 64 * mib;
    memory_pool pool(0);
    const std::uint64_t before = resident_bytes();
    for (std::size_t i = 0; i < 1500; ++i) {
        const std::size_t bytes = mib - 384 * 1024 + i * 509;
        void* memory = pool.allocate(bytes).value();
        std::memset(memory, 1, bytes);
        CHECK(pool.info().reserved >= bytes);
        pool.release(memory);
        if (pool.info().reserved > little)
            break;
    }
    CHECK(pool.info().used == 0);
    CHECK(pool.info().reserved <= little);
    CHECK(resident_bytes() < before + 2 * little);
}

TEST_CASE("with many threads the counters stay right")
{
    memory_pool pool(1 << 22);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&pool, t] {
            std::vector<void*> mine;
            for (int i = 0; i < 500; ++i) {
                auto got = pool.allocate(static_cast<std::size_t>(64 * (1 + (i * 7 + t) % 16)));
                if (got) {
                    std::memset(got.value(), t, 64);
                    mine.push_back(got.value());
                }
                if (mine.size() > 20) {
                    pool.release(mine.front());
                    mine.erase(mine.begin());
                }
                if (i % 100 == 0)
                    pool.trim();
            }
            for (void* memory : mine)
                pool.release(memory);
        });
    for (auto& t : threads)
        t.join();
    CHECK(pool.info().used == 0);
    CHECK(pool.info().free == pool.info().total);
}

TEST_SUITE_END();

} // namespace test_host_memory_pool
