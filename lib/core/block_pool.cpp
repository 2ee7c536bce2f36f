#include <coaccel/core/detail/block_pool.hpp>

#include <array>
#include <mutex>
#include <new>

// Recycled blocks would hide uses after free from the sanitizers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COACCEL_RECYCLES_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COACCEL_RECYCLES_BLOCKS 0
#endif
#endif
#ifndef COACCEL_RECYCLES_BLOCKS
#define COACCEL_RECYCLES_BLOCKS 1
#endif

namespace coaccel::detail {
namespace {

constexpr std::size_t granule = 128;
// Up to 2 KiB: the run of a plan with its arguments has more than 1 KiB.
constexpr std::size_t class_count = 16;
constexpr std::size_t local_limit = 128;
constexpr std::size_t shared_limit = 8192;

struct block {
    block* next;
};

struct free_list {
    block* head = nullptr;
    std::size_t count = 0;

    void push(void* memory) noexcept
    {
        head = new (memory) block{head};
        ++count;
    }

    void* pop() noexcept
    {
        block* taken = head;
        head = taken->next;
        --count;
        return taken;
    }

    void move_to(free_list& other, std::size_t n) noexcept
    {
        while (n-- > 0 && head)
            other.push(pop());
    }
};

struct shared_blocks {
    std::mutex mutex;
    std::array<free_list, class_count> lists;
};

// Never destroyed: threads may end after static destructors have begun.
shared_blocks& shared() noexcept
{
    static shared_blocks& instance = *new shared_blocks;
    return instance;
}

struct local_blocks {
    std::array<free_list, class_count> lists;

    ~local_blocks()
    {
        for (std::size_t c = 0; c < class_count; ++c)
            give_back(c, lists[c].count);
    }

    void give_back(std::size_t c, std::size_t n) noexcept
    {
        auto& pool = shared();
        const std::scoped_lock lock(pool.mutex);
        lists[c].move_to(pool.lists[c], n);
        while (pool.lists[c].count > shared_limit)
            ::operator delete(pool.lists[c].pop());
    }

    void fetch(std::size_t c) noexcept
    {
        auto& pool = shared();
        const std::scoped_lock lock(pool.mutex);
        pool.lists[c].move_to(lists[c], local_limit / 2);
    }
};

thread_local local_blocks local;

} // namespace

void* allocate_block(std::size_t size)
{
    const std::size_t c = (size - 1) / granule;
    if (!COACCEL_RECYCLES_BLOCKS || c >= class_count)
        return ::operator new(size);
    auto& list = local.lists[c];
    if (!list.head)
        local.fetch(c);
    return list.head ? list.pop() : ::operator new((c + 1) * granule);
}

void release_block(void* memory, std::size_t size) noexcept
{
    const std::size_t c = (size - 1) / granule;
    if (!COACCEL_RECYCLES_BLOCKS || c >= class_count) {
        ::operator delete(memory);
        return;
    }
    auto& list = local.lists[c];
    list.push(memory);
    if (list.count > local_limit)
        local.give_back(c, local_limit / 2);
}

} // namespace coaccel::detail
