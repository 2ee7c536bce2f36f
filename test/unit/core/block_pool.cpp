#include "support/sanitized.hpp"

#include <coaccel/core/detail/block_pool.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace test_core_block_pool {

namespace {

using coaccel::detail::allocate_block;
using coaccel::detail::block_allocator;
using coaccel::detail::release_block;

/// With sanitizers, blocks are not recycled, so that a use after release is detected.
constexpr bool recycles = !test::sanitized;

struct block {
    void* memory;
    std::size_t size;
};

block make(std::size_t size, int fill)
{
    block b{allocate_block(size), size};
    std::memset(b.memory, fill, size);
    return b;
}

bool intact(const block& b, int fill)
{
    const auto* bytes = static_cast<const unsigned char*>(b.memory);
    for (std::size_t i = 0; i < b.size; ++i)
        if (bytes[i] != static_cast<unsigned char>(fill))
            return false;
    return true;
}

constexpr std::size_t sizes[] = {1, 8, 127, 128, 129, 256, 257, 512, 1000, 1023, 1024, 1025, 5000};

} // namespace

TEST_SUITE_BEGIN("block_pool");

TEST_CASE("blocks are aligned, large enough and disjoint")
{
    std::vector<block> blocks;
    int fill = 0;
    for (int round = 0; round < 20; ++round)
        for (const auto size : sizes) {
            blocks.push_back(make(size, ++fill));
            CHECK(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % alignof(std::max_align_t) == 0);
        }
    fill = 0;
    for (const auto& b : blocks) {
        CHECK(intact(b, ++fill));
        release_block(b.memory, b.size);
    }
}

TEST_CASE("a released block is the next block of its own size class only")
{
    if (!recycles)
        return;
    for (const auto size : sizes) {
        if (size > 1024)
            continue;
        CAPTURE(size);
        void* first = allocate_block(size);
        release_block(first, size);
        void* other_class = allocate_block(size + 128 <= 1024 ? size + 128 : size - 128);
        CHECK(other_class != first);
        void* again = allocate_block((size - 1) / 128 * 128 + 1);
        CHECK(again == first);
        release_block(again, size);
        release_block(other_class, size + 128 <= 1024 ? size + 128 : size - 128);
    }
}

TEST_CASE("many more blocks than a thread caches are allocated and released")
{
    for (int round = 0; round < 3; ++round) {
        std::vector<void*> blocks;
        for (int i = 0; i < 12000; ++i)
            blocks.push_back(allocate_block(100));
        CHECK(std::set<void*>(blocks.begin(), blocks.end()).size() == blocks.size());
        for (void* b : blocks)
            release_block(b, 100);
    }
}

TEST_CASE("blocks made on one thread may be released on another")
{
    constexpr int threads = 4;
    constexpr int rounds = 2000;
    std::mutex mutex;
    std::vector<std::pair<block, int>> handed;
    bool sound = true;
    auto work = [&](int id) {
        for (int i = 0; i < rounds; ++i) {
            const int fill = (id * 31 + i) & 0xff;
            const block mine = make(sizes[static_cast<std::size_t>(i) % std::size(sizes)], fill);
            std::pair<block, int> other{};
            {
                const std::scoped_lock lock(mutex);
                handed.emplace_back(mine, fill);
                if (handed.size() > 64) {
                    std::swap(handed.front(), handed.back());
                    other = handed.back();
                    handed.pop_back();
                }
            }
            if (!other.first.memory)
                continue;
            const bool fine = intact(other.first, other.second);
            release_block(other.first.memory, other.first.size);
            const std::scoped_lock lock(mutex);
            sound &= fine;
        }
    };
    std::vector<std::thread> pool;
    for (int id = 0; id < threads; ++id)
        pool.emplace_back(work, id);
    for (auto& t : pool)
        t.join();
    CHECK(sound);
    for (const auto& [b, fill] : handed) {
        CHECK(intact(b, fill));
        release_block(b.memory, b.size);
    }
}

TEST_CASE("blocks cached by a thread are available to other threads after its end")
{
    if (!recycles)
        return;
    constexpr std::size_t size = 900;
    std::set<void*> theirs;
    std::thread([&] {
        std::vector<void*> blocks;
        for (int i = 0; i < 40; ++i)
            blocks.push_back(allocate_block(size));
        theirs.insert(blocks.begin(), blocks.end());
        for (void* b : blocks)
            release_block(b, size);
    }).join();
    std::vector<void*> mine;
    std::size_t reused = 0;
    std::thread([&] {
        for (int i = 0; i < 40; ++i) {
            mine.push_back(allocate_block(size));
            reused += theirs.contains(mine.back());
        }
        for (void* b : mine)
            release_block(b, size);
    }).join();
    CHECK(reused == 40);
}

TEST_CASE("the allocator works with containers")
{
    std::list<int, block_allocator<int>> numbers;
    for (int i = 0; i < 1000; ++i)
        numbers.push_back(i);
    int expected = 0;
    for (const int n : numbers)
        CHECK(n == expected++);
    CHECK(block_allocator<int>() == block_allocator<int>(block_allocator<double>()));
    const auto shared = std::allocate_shared<std::string>(block_allocator<std::string>(), "text");
    CHECK(*shared == "text");
}

struct alignas(128) wide {
    std::uint64_t words[16];
};

TEST_CASE("the allocator gives memory of any alignment")
{
    std::list<wide, block_allocator<wide>> all;
    for (int i = 0; i < 50; ++i)
        CHECK(reinterpret_cast<std::uintptr_t>(&all.emplace_back()) % alignof(wide) == 0);
}

TEST_SUITE_END();

} // namespace test_core_block_pool
