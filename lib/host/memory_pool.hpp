#ifndef COACCEL_HOST_MEMORY_POOL_HPP
#define COACCEL_HOST_MEMORY_POOL_HPP

#include <coaccel/core/backend.hpp>

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace coaccel::host {

/// Aligned memory with a limit. Freed blocks are kept for the next allocation of their size until trimmed.
class memory_pool {
public:
    /// A limit of 0 is the memory of the machine.
    explicit memory_pool(std::uint64_t limit) noexcept;
    memory_pool(const memory_pool&) = delete;
    memory_pool& operator=(const memory_pool&) = delete;
    ~memory_pool();

    result<void*> allocate(std::size_t bytes);
    void release(void* memory) noexcept;
    void trim() noexcept;
    memory_info info() const noexcept;

private:
    void drop_cache() noexcept;

    const std::uint64_t limit_;
    mutable std::mutex mutex_;
    std::unordered_map<void*, std::size_t> live_;
    std::map<std::size_t, std::vector<void*>> cache_;
    std::uint64_t used_ = 0;
    std::uint64_t cached_ = 0;
};

} // namespace coaccel::host

#endif
