#include "host/pinned_memory.hpp"

#include <new>

namespace coaccel::host {
namespace {

// Size of the header before each block. It holds the block size, so that a release needs no lookup table, and is as
// wide as the alignment.
constexpr std::size_t margin = 64;
constexpr std::align_val_t block_alignment{margin};

} // namespace

result<void*> pinned_memory::try_allocate(std::size_t bytes)
{
    const std::scoped_lock lock(mutex_);
    if (bytes > ~std::size_t(0) - margin || (limit_ != 0 && bytes > limit_))
        return errc::out_of_memory;
    if (limit_ != 0 && bytes > limit_ - used_) {
        put_off_ = true;
        return nullptr;
    }
    void* block = ::operator new(bytes + margin, block_alignment, std::nothrow);
    if (!block)
        return errc::out_of_memory;
    *static_cast<std::size_t*>(block) = bytes;
    used_ += bytes;
    return static_cast<char*>(block) + margin;
}

void pinned_memory::release(void* memory) noexcept
{
    void* block = static_cast<char*>(memory) - margin;
    const std::scoped_lock lock(mutex_);
    used_ -= *static_cast<std::size_t*>(block);
    ::operator delete(block, block_alignment);
    if (std::exchange(put_off_, false) && listener_.function)
        listener_.function(listener_.argument);
}

void pinned_memory::listen(notification n) noexcept
{
    const std::scoped_lock lock(mutex_);
    listener_ = n;
}

std::uint64_t pinned_memory::used() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return used_;
}

} // namespace coaccel::host
