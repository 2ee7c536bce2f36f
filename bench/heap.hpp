#ifndef COACCEL_BENCH_HEAP_HPP
#define COACCEL_BENCH_HEAP_HPP

#include <cstdint>

namespace coaccel::bench {

/// The number of allocations by malloc and related functions in this process so far, and the bytes in use.
/// Counts at the level of malloc, because Asio bypasses operator new.
struct heap_use {
    std::uint64_t allocations;
    std::int64_t bytes;
};

heap_use heap() noexcept;

} // namespace coaccel::bench

#endif
