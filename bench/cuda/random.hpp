#ifndef COACCEL_BENCH_CUDA_RANDOM_HPP
#define COACCEL_BENCH_CUDA_RANDOM_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coaccel::bench {

/// Values from -1 to 1.
inline std::vector<float> random_floats(std::size_t count, std::uint32_t seed)
{
    std::vector<float> made(count);
    std::uint32_t x = seed;
    for (float& f : made) {
        x = x * 1664525u + 1013904223u;
        f = static_cast<float>(x >> 8) * (2.0f / 16777216.0f) - 1.0f;
    }
    return made;
}

} // namespace coaccel::bench

#endif
