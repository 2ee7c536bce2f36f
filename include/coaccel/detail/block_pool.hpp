#ifndef COACCEL_DETAIL_BLOCK_POOL_HPP
#define COACCEL_DETAIL_BLOCK_POOL_HPP

#include <coaccel/core/config.hpp>

#include <cstddef>
#include <new>

namespace coaccel::detail {

/// Memory for pending ops, kept per thread and handed between threads in batches, so that an op in
/// steady state costs no heap allocation however many are pending. Aligned as operator new does by default. Throws
/// std::bad_alloc.
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
    // Rare enough to go to the heap: handlers with vector registers or cache lines among their captures.
    static constexpr bool over_aligned() noexcept { return alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__; }
};

} // namespace coaccel::detail

#endif
