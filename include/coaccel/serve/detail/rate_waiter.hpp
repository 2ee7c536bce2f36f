#ifndef COACCEL_SERVE_DETAIL_RATE_WAITER_HPP
#define COACCEL_SERVE_DETAIL_RATE_WAITER_HPP

#include <coaccel/core/detail/request.hpp>

#include <cstdint>

namespace coaccel::detail {

struct rate_bucket;

/// A request that waits for tokens. The rate_buckets refer to it until they have returned or removed it.
struct rate_waiter {
    explicit rate_waiter(std::uint64_t n) noexcept : tokens(n) {}

    const std::uint64_t tokens;

    // Used by the rate_buckets.
    rate_bucket* bucket = nullptr;
    list_hook in_queue;
};

} // namespace coaccel::detail

#endif
