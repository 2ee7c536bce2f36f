#include "host/memory_pool.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace coaccel;
using host::memory_pool;

constexpr std::size_t granule = 256;
constexpr auto huge = std::numeric_limits<std::size_t>::max();

} // namespace

TEST_SUITE_BEGIN("memory_pool");

TEST_CASE("memory is aligned, writable and accounted for")
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

TEST_CASE("a limit of zero is the memory of the machine")
{
    memory_pool pool(0);
    CHECK(pool.info().total > std::uint64_t(1) << 20);
    CHECK(pool.info().free == pool.info().total);
    CHECK(pool.allocate(1000));
}

TEST_CASE("released memory is used again, for its own size only")
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

TEST_CASE("the limit counts what is used and what is kept, until it is trimmed")
{
    memory_pool pool(4 * granule);
    void* a = pool.allocate(3 * granule).value();
    CHECK(pool.allocate(2 * granule).error() == errc::out_of_memory);
    CHECK(pool.allocate(granule));
    CHECK(pool.allocate(1).error() == errc::out_of_memory);
    CHECK(pool.info().free == 0);
    pool.release(a);
    CHECK(pool.info().free == 3 * granule);
    // It is kept as three in one, and of no use as two.
    CHECK(pool.allocate(2 * granule).error() == errc::out_of_memory);
    pool.trim();
    CHECK(pool.allocate(2 * granule));
    CHECK(pool.info().used == 3 * granule);
    CHECK(pool.allocate(granule));
    CHECK(pool.allocate(1).error() == errc::out_of_memory);
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

TEST_CASE("everything goes back when the pool goes, used or kept")
{
    // The leak checker sees it if not.
    memory_pool pool(1 << 20);
    std::vector<void*> all;
    for (int i = 0; i < 100; ++i)
        all.push_back(pool.allocate(static_cast<std::size_t>(1 + i * 50)).value());
    for (std::size_t i = 0; i < all.size(); i += 2)
        pool.release(all[i]);
}

TEST_CASE("any number of blocks of one size can be kept")
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

TEST_CASE("from many threads the account stays right")
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
