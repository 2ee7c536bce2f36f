#ifndef COACCEL_BENCH_HEAP_HPP
#define COACCEL_BENCH_HEAP_HPP

#include <cstdint>

namespace coaccel::bench {

/// Calls of malloc and its kin by this process so far, and the bytes it holds. The whole program is
/// counted, because Asio allocates past operator new.
struct heap_use {
    std::uint64_t allocations;
    std::int64_t bytes;
};

heap_use heap() noexcept;

} // namespace coaccel::bench

#endif
