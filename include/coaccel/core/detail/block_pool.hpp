#ifndef COACCEL_CORE_DETAIL_BLOCK_POOL_HPP
#define COACCEL_CORE_DETAIL_BLOCK_POOL_HPP

#include <coaccel/core/config.hpp>

#include <cstddef>
#include <new>

namespace coaccel::detail {

/// Memory for pending ops. Blocks are cached per thread and exchanged between threads in batches, so that an op in
/// steady state needs no heap allocation however many ops are pending. Aligned like memory from operator new. Throws
/// std::bad_alloc.
COACCEL_DECL void* allocate_block(std::size_t size);
COACCEL_DECL void release_block(void* block, std::size_t size) noexcept;

/// The allocator of handlers that have no associated allocator.
template <class T>
struct block_allocator {
    using value_type = T;

    block_allocator() noexcept = default;
    template <class U>
    block_allocator(const block_allocator<U>&) noexcept
    {}

    T* allocate(std::size_t n)
    {
        if constexpr (over_aligned())
            return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
        else
            return static_cast<T*>(allocate_block(n * sizeof(T)));
    }

    void deallocate(T* p, std::size_t n) noexcept
    {
        if constexpr (over_aligned())
            ::operator delete(p, std::align_val_t(alignof(T)));
        else
            release_block(p, n * sizeof(T));
    }

    friend bool operator==(const block_allocator&, const block_allocator&) noexcept { return true; }

private:
    // Rare enough to use the heap: handlers that capture vector registers or cache-line-aligned data.
    static constexpr bool over_aligned() noexcept { return alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__; }
};

} // namespace coaccel::detail

#endif
