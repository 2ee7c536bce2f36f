#ifndef COACCEL_HOST_SIZE_CLASS_HPP
#define COACCEL_HOST_SIZE_CLASS_HPP

#include <bit>
#include <cstddef>

namespace coaccel::host {

/// The sizes of memory blocks: multiples of a granule for small sizes, then eight sizes between consecutive powers of
/// two. A block is at most an eighth larger than the requested size rounded up to a granule.
struct size_class {
    static constexpr std::size_t granule = 256;
    static constexpr std::size_t steps = 8;
    /// Covers sizes up to 2^48; no machine has more memory.
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
        // The largest power of two below the size in granules is at least `steps`.
        const std::size_t octave = std::bit_width(granules - 1) - std::bit_width(steps);
        const std::size_t step = std::size_t(1) << octave;
        const std::size_t rounded = (granules + step - 1) / step;
        return {octave * steps + rounded - 1, rounded * step * granule};
    }
};

} // namespace coaccel::host

#endif
