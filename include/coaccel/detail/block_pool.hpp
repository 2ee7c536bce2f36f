#ifndef COACCEL_DETAIL_BLOCK_POOL_HPP
#define COACCEL_DETAIL_BLOCK_POOL_HPP

#include <coaccel/core/config.hpp>

#include <cstddef>
#include <type_traits>

namespace coaccel::detail {

/// Memory for pending ops, kept per thread and handed between threads in batches, so that an op in
/// steady state costs no heap allocation however many are pending. Throws std::bad_alloc.
COACCEL_DECL void* allocate_block(std::size_t size);
COACCEL_DECL void release_block(void* block, std::size_t size) noexcept;

/// Used where a handler names no allocator of its own.
template <class T>
struct block_allocator {
    using value_type = T;

    block_allocator() noexcept = default;
    template <class U>
    block_allocator(const block_allocator<U>&) noexcept
    {}

    T* allocate(std::size_t n)
    {
        static_assert(alignof(T) <= alignof(std::max_align_t));
        return static_cast<T*>(allocate_block(n * sizeof(T)));
    }

    void deallocate(T* p, std::size_t n) noexcept { release_block(p, n * sizeof(T)); }

    friend bool operator==(const block_allocator&, const block_allocator&) noexcept { return true; }
};

} // namespace coaccel::detail

#endif
