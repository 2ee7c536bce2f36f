#include "host/memory_pool.hpp"

#include <cstdlib>
#include <new>
#include <unistd.h>

namespace coaccel::host {
namespace {

// A cache line, and enough for any vector unit.
constexpr std::size_t alignment = 64;
constexpr std::size_t granule = 256;

std::uint64_t machine_memory() noexcept
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long size = ::sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? std::uint64_t(pages) * std::uint64_t(size) : std::uint64_t(1) << 40;
}

} // namespace

memory_pool::memory_pool(std::uint64_t limit) noexcept : limit_(limit != 0 ? limit : machine_memory()) {}

memory_pool::~memory_pool()
{
    drop_cache();
    for (const auto& [memory, size] : live_)
        std::free(memory);
}

result<void*> memory_pool::allocate(std::size_t bytes)
{
    const std::size_t size = (bytes + granule - 1) / granule * granule;
    if (size < bytes || size > limit_)
        return errc::out_of_memory;
    const std::scoped_lock lock(mutex_);
    void* fresh = nullptr;
    void* memory = nullptr;
    try {
        if (auto kept = cache_.find(size); kept != cache_.end() && !kept->second.empty()) {
            memory = kept->second.back();
            live_.emplace(memory, size);
            kept->second.pop_back();
            cached_ -= size;
        } else {
            if (used_ + cached_ + size > limit_)
                return errc::out_of_memory;
            memory = fresh = std::aligned_alloc(alignment, size);
            if (!fresh)
                return errc::out_of_memory;
            live_.emplace(memory, size);
            // Room for its return, which must not fail.
            auto& list = cache_[size];
            if (list.capacity() == list.size())
                list.reserve(2 * list.size() + 8);
        }
    } catch (const std::bad_alloc&) {
        live_.erase(fresh);
        std::free(fresh);
        return errc::out_of_memory;
    }
    used_ += size;
    return memory;
}

void memory_pool::release(void* memory) noexcept
{
    const std::scoped_lock lock(mutex_);
    const auto found = live_.find(memory);
    const std::size_t size = found->second;
    live_.erase(found);
    used_ -= size;
    auto& list = cache_.find(size)->second;
    if (list.size() == list.capacity()) {
        std::free(memory);
        return;
    }
    list.push_back(memory);
    cached_ += size;
}

void memory_pool::trim() noexcept
{
    const std::scoped_lock lock(mutex_);
    drop_cache();
}

void memory_pool::drop_cache() noexcept
{
    for (auto& [size, list] : cache_) {
        for (void* memory : list)
            std::free(memory);
        list.clear();
    }
    cached_ = 0;
}

memory_info memory_pool::info() const noexcept
{
    const std::scoped_lock lock(mutex_);
    return {used_, limit_ - used_, limit_};
}

} // namespace coaccel::host
