#ifndef COACCEL_HOST_SIZE_CLASS_HPP
#define COACCEL_HOST_SIZE_CLASS_HPP

#include <bit>
#include <cstddef>

namespace coaccel::host {

/// Sizes that blocks of memory come in: multiples of a granule at first, then eight between a power of two and the
/// next, so that a block is at most an eighth larger than what was asked for.
struct size_class {
    static constexpr std::size_t granule = 256;
    static constexpr std::size_t steps = 8;
    /// Of sizes up to 2^48; no machine has more memory.
    static constexpr std::size_t count = (48 - 11) * steps + steps;
    static constexpr std::size_t largest = std::size_t(1) << 48;

    std::size_t index = 0;
    std::size_t bytes = 0;

    /// The smallest class for this many bytes, from 1 to `largest`.
    static constexpr size_class of(std::size_t bytes) noexcept
    {
        const std::size_t granules = (bytes + granule - 1) / granule;
        if (granules <= steps)
            return {granules - 1, granules * granule};
        // The power of two that is smaller than the size, in granules, is at least `steps`.
        const std::size_t octave = std::bit_width(granules - 1) - std::bit_width(steps);
        const std::size_t step = std::size_t(1) << octave;
        const std::size_t rounded = (granules + step - 1) / step;
        return {octave * steps + rounded - 1, rounded * step * granule};
    }
};

} // namespace coaccel::host

#endif
