#include "heap.hpp"

#include <atomic>
#include <cstddef>
#include <malloc.h>

namespace {

std::atomic<std::uint64_t> allocations{0};
std::atomic<std::int64_t> bytes{0};

void* counted(void* p) noexcept
{
    if (p) {
        allocations.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(static_cast<std::int64_t>(malloc_usable_size(p)), std::memory_order_relaxed);
    }
    return p;
}

} // namespace

// glibc allows a program to interpose these functions.
extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) noexcept
{
    return counted(__libc_malloc(size));
}

void* calloc(std::size_t n, std::size_t size) noexcept
{
    return counted(__libc_calloc(n, size));
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept
{
    return counted(__libc_memalign(alignment, size));
}

void free(void* p) noexcept
{
    if (p)
        bytes.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(p)), std::memory_order_relaxed);
    __libc_free(p);
}

} // extern "C"

namespace coaccel::bench {

heap_use heap() noexcept
{
    return {allocations.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed)};
}

} // namespace coaccel::bench
