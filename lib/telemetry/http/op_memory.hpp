#ifndef COACCEL_TELEMETRY_HTTP_OP_MEMORY_HPP
#define COACCEL_TELEMETRY_HTTP_OP_MEMORY_HPP

#include <cstddef>
#include <new>

namespace coaccel::detail {

/// Memory for one asynchronous operation at a time, so that it can be started when there is no other. A second or a
/// larger one gets its memory from operator new.
class op_memory {
public:
    op_memory() = default;
    op_memory(const op_memory&) = delete;
    op_memory& operator=(const op_memory&) = delete;

    void* allocate(std::size_t bytes)
    {
        if (used_ || bytes > sizeof storage_)
            return ::operator new(bytes);
        used_ = true;
        return storage_;
    }

    void deallocate(void* memory) noexcept
    {
        if (memory == storage_)
            used_ = false;
        else
            ::operator delete(memory);
    }

private:
    alignas(std::max_align_t) std::byte storage_[512];
    bool used_ = false;
};

/// The associated allocator of a handler whose operation uses an op_memory.
template <class T>
class op_memory_allocator {
public:
    using value_type = T;

    explicit op_memory_allocator(op_memory& memory) noexcept : memory_(&memory) {}
    template <class U>
    op_memory_allocator(const op_memory_allocator<U>& other) noexcept : memory_(other.memory_)
    {}

    T* allocate(std::size_t n) const { return static_cast<T*>(memory_->allocate(n * sizeof(T))); }
    void deallocate(T* p, std::size_t) const noexcept { memory_->deallocate(p); }

    template <class U>
    bool operator==(const op_memory_allocator<U>& other) const noexcept
    {
        return memory_ == other.memory_;
    }

private:
    template <class U>
    friend class op_memory_allocator;

    op_memory* memory_;
};

} // namespace coaccel::detail

#endif
