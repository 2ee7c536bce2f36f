#ifndef COACCEL_TEST_SUPPORT_TRACKING_HPP
#define COACCEL_TEST_SUPPORT_TRACKING_HPP

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace test {

struct allocation_count {
    int allocations = 0;
    int live = 0;
};

/// Counts the allocations made through it.
template <class T>
struct tracking_allocator {
    using value_type = T;

    explicit tracking_allocator(allocation_count& c) noexcept : count(&c) {}
    template <class U>
    tracking_allocator(const tracking_allocator<U>& other) noexcept : count(other.count)
    {}

    T* allocate(std::size_t n)
    {
        ++count->allocations;
        ++count->live;
        return std::allocator<T>().allocate(n);
    }

    void deallocate(T* p, std::size_t n) noexcept
    {
        --count->live;
        std::allocator<T>().deallocate(p, n);
    }

    friend bool operator==(const tracking_allocator& a, const tracking_allocator& b) noexcept
    {
        return a.count == b.count;
    }

    allocation_count* count;
};

} // namespace test

#endif
