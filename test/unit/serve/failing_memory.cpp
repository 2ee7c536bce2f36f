// Replaces the functions that allocate memory, for this program.
#include "failing_memory.hpp"

#include <cstdlib>
#include <new>

namespace test {

thread_local std::int64_t allocations_left = -1;

} // namespace test

namespace {

bool refuses() noexcept
{
    return test::allocations_left >= 0 && test::allocations_left-- == 0;
}

} // namespace

void* operator new(std::size_t bytes)
{
    void* memory = refuses() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    return refuses() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

// Asio allocates with this function.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept
{
    void* memory = nullptr;
    if (refuses() || ::posix_memalign(&memory, alignment, bytes) != 0)
        return nullptr;
    return memory;
}
