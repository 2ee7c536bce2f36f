#ifndef COACCEL_HOST_EXPORTABLE_MEMORY_HPP
#define COACCEL_HOST_EXPORTABLE_MEMORY_HPP

#include "host/memory_pool.hpp"
#include "posix/sealed_memory.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <mutex>

namespace coaccel::host {

/// Memory that outlives the process: allocated here and then sealed, or mapped from a descriptor. Thread-safe, because
/// streams release memory on their threads.
class exportable_memory {
public:
    /// `limit`: memory counts towards its limit.
    explicit exportable_memory(memory_pool& limit) noexcept : limit_(limit) {}

    /// Errors: errc::out_of_memory.
    result<void*> allocate(std::size_t bytes);

    /// Seals allocated memory, and returns its descriptor. Errors: errc::invalid_argument for memory that was sealed or
    /// mapped; those of sealed_memory::seal.
    result<detail::unique_fd> seal(void* memory, memory_access access);

    /// Errors: those of sealed_memory::open, or errc::out_of_memory.
    result<void*> map(const detail::unique_fd& descriptor, std::size_t bytes, memory_access access);

    void release(void* memory) noexcept;

private:
    result<void*> add(result<detail::sealed_memory> made, memory_pool::outside what, std::size_t bytes);

    memory_pool& limit_;
    std::mutex mutex_;
    boost::unordered_flat_map<void*, detail::sealed_memory> all_;
};

} // namespace coaccel::host

#endif
