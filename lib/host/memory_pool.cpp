#include "host/memory_pool.hpp"

#include "posix/machine_limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

// Under AddressSanitizer blocks come from malloc, because memory from mmap has no red zones and is not scanned for
// leaks.
#if defined(__SANITIZE_ADDRESS__)
#define COACCEL_MAPS_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COACCEL_MAPS_BLOCKS 0
#endif
#endif
#ifndef COACCEL_MAPS_BLOCKS
#define COACCEL_MAPS_BLOCKS 1
#endif

namespace coaccel::host {
namespace {

// A cache line, and sufficient for every vector unit.
constexpr std::size_t alignment = 64;
constexpr std::uint64_t mib = std::uint64_t(1) << 20;
// Blocks of at least this size are mapped individually, because malloc does not return memory below the highest block
// in use to the system.
constexpr std::size_t least_mapped = std::size_t(128) << 10;
constexpr std::uint64_t always_kept = 16 * mib;
constexpr std::uint64_t never_kept = 256 * mib;
constexpr unsigned period = 256;

constexpr bool is_mapped(std::size_t bytes) noexcept
{
    return COACCEL_MAPS_BLOCKS != 0 && bytes >= least_mapped;
}

} // namespace

memory_pool::memory_pool(std::uint64_t limit) : usable_(detail::usable_memory()), limit_(limit != 0 ? limit : usable_)
{
    static_assert(sizeof(block) == alignment);
}

memory_pool::~memory_pool()
{
    trim();
    live_.clear_and_dispose([](block* b) { give_back(*b); });
}

result<void*> memory_pool::allocate(std::size_t bytes)
{
    if (bytes > size_class::largest)
        return errc::out_of_memory;
    const std::size_t used =
        (std::max<std::size_t>(bytes, 1) + size_class::granule - 1) / size_class::granule * size_class::granule;
    const auto wanted = size_class::of(used);
    const std::scoped_lock lock(mutex_);
    if (exceeds(used))
        return errc::out_of_memory;
    block* b = take(wanted);
    if (!b)
        return errc::out_of_memory;
    b->used = used;
    live_.push_back(*b);
    used_ += used;
    taken_ += b->bytes;
    high_water_ = std::max(high_water_, used_ - outside_);
    note_use();
    return b + 1;
}

memory_pool::block* memory_pool::take(size_class wanted) noexcept
{
    auto& list = kept_of_class_[wanted.index];
    if (!list.empty()) {
        // The most recently released block is the most likely to be cached.
        block& b = list.back();
        list.pop_back();
        kept_.erase(kept_.iterator_to(b));
        kept_bytes_ -= b.bytes;
        return &b;
    }
    while (!kept_.empty() && outside_ + shared_ + taken_ + kept_bytes_ + wanted.bytes > limit_)
        drop_oldest();
    block* b = obtain(wanted);
    while (!b && !kept_.empty()) {
        drop_oldest();
        b = obtain(wanted);
    }
    return b;
}

void memory_pool::release(void* memory) noexcept
{
    block& b = static_cast<block*>(memory)[-1];
    const std::scoped_lock lock(mutex_);
    live_.erase(live_.iterator_to(b));
    used_ -= b.used;
    taken_ -= b.bytes;
    kept_.push_back(b);
    kept_of_class_[b.index].push_back(b);
    kept_bytes_ += b.bytes;
    while (kept_bytes_ > most_kept())
        drop_oldest();
}

bool memory_pool::count(outside what, std::size_t bytes) noexcept
{
    const std::scoped_lock lock(mutex_);
    if (exceeds(bytes))
        return false;
    (what == outside::shared ? shared_ : outside_) += bytes;
    if (what == outside::own)
        used_ += bytes;
    while (!kept_.empty() && outside_ + shared_ + taken_ + kept_bytes_ > limit_)
        drop_oldest();
    return true;
}

void memory_pool::uncount(outside what, std::size_t bytes) noexcept
{
    const std::scoped_lock lock(mutex_);
    (what == outside::shared ? shared_ : outside_) -= bytes;
    if (what == outside::own)
        used_ -= bytes;
}

void memory_pool::share(std::size_t bytes) noexcept
{
    const std::scoped_lock lock(mutex_);
    outside_ -= bytes;
    used_ -= bytes;
    shared_ += bytes;
}

/// Memory that was in use recently is likely to be needed again.
std::uint64_t memory_pool::most_kept() const noexcept
{
    const auto missing = std::max(peak_, last_peak_) - taken_;
    return std::min({std::max(always_kept, missing), never_kept, usable_ / 16});
}

void memory_pool::note_use() noexcept
{
    peak_ = std::max(peak_, taken_);
    if (++allocations_ < period)
        return;
    allocations_ = 0;
    last_peak_ = peak_;
    peak_ = taken_;
}

memory_pool::block* memory_pool::obtain(size_class wanted) noexcept
{
    const std::size_t all = sizeof(block) + wanted.bytes;
    void* memory = nullptr;
    if (is_mapped(wanted.bytes)) {
        memory = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return nullptr;
    } else {
        memory = std::aligned_alloc(alignment, all);
        if (!memory)
            return nullptr;
    }
    auto* b = new (memory) block;
    b->index = static_cast<std::uint32_t>(wanted.index);
    b->bytes = wanted.bytes;
    return b;
}

void memory_pool::give_back(block& b) noexcept
{
    const std::size_t bytes = b.bytes;
    b.~block();
    if (is_mapped(bytes))
        (void)::munmap(&b, sizeof(block) + bytes);
    else
        std::free(&b);
}

void memory_pool::drop_oldest() noexcept
{
    block& b = kept_.front();
    kept_.pop_front();
    auto& list = kept_of_class_[b.index];
    list.erase(list.iterator_to(b));
    kept_bytes_ -= b.bytes;
    give_back(b);
}

void memory_pool::trim() noexcept
{
    const std::scoped_lock lock(mutex_);
    while (!kept_.empty())
        drop_oldest();
}

memory_info memory_pool::info() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return {.used = used_,
            .free = limit_ - used_ - shared_,
            .total = limit_,
            .reserved = outside_ + taken_ + kept_bytes_,
            .high_water = high_water_ + outside_};
}

} // namespace coaccel::host
