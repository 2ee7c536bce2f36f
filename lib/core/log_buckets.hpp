#ifndef COACCEL_CORE_LOG_BUCKETS_HPP
#define COACCEL_CORE_LOG_BUCKETS_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coaccel::detail {

/// Buckets for integers with a relative width of at most 1/8: eight per power of two, for values below 2^42. Larger
/// values are in the last bucket.
struct log_buckets {
    static constexpr unsigned steps = 8;
    static constexpr unsigned powers = 40;
    static constexpr std::size_t count = steps * powers;

    // Values below eight each have their own bucket. Above, the three bits after the leading one select the bucket.
    static constexpr std::size_t index(std::uint64_t value) noexcept
    {
        if (value < steps)
            return value;
        const auto power = static_cast<unsigned>(std::bit_width(value)) - 4;
        const std::size_t index = (power + 1) * steps + ((value >> power) & (steps - 1));
        return std::min<std::size_t>(index, count - 1);
    }

    /// The largest value of a bucket.
    static constexpr std::uint64_t upper(std::size_t bucket) noexcept
    {
        if (bucket < steps)
            return bucket;
        const auto power = bucket / steps - 1;
        return ((std::uint64_t{steps} + bucket % steps + 1) << power) - 1;
    }
};

} // namespace coaccel::detail

#endif
