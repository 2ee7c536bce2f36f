#ifndef COACCEL_RAND_PHILOX_HPP
#define COACCEL_RAND_PHILOX_HPP

#include <array>
#include <cstdint>

// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011), with the numbers
// in the order in which cuRAND's generator produces them.
namespace coaccel::rand {

using philox_block = std::array<std::uint32_t, 4>;

constexpr philox_block philox(std::uint64_t key, philox_block counter) noexcept
{
    auto low = static_cast<std::uint32_t>(key);
    auto high = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t(0xd2511f53) * counter[0];
        const std::uint64_t b = std::uint64_t(0xcd9e8d57) * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<std::uint32_t>(a)};
        low += 0x9e3779b9;
        high += 0xbb67ae85;
    }
    return counter;
}

/// cuRAND interleaves this many subsequences, each with its own counter: four words of the first, four of the second,
/// and so on.
inline constexpr std::uint64_t philox_subsequences = 65536;

/// The words of one round over all subsequences.
inline constexpr std::uint64_t philox_round_words = 4 * philox_subsequences;

constexpr philox_block philox_at(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t counter) noexcept
{
    return philox(seed, {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                         static_cast<std::uint32_t>(subsequence), static_cast<std::uint32_t>(subsequence >> 32)});
}

/// The four words at the positions 4 * index to 4 * index + 3.
constexpr philox_block philox_words(std::uint64_t seed, std::uint64_t index) noexcept
{
    return philox_at(seed, index % philox_subsequences, index / philox_subsequences);
}

/// The four words that make numbers 2 * half and 2 * half + 1 of 64 bits each, counted from the last multiple of four
/// words before `position`. Two blocks of a subsequence make four such numbers, so that they do not occupy consecutive
/// positions.
constexpr philox_block philox_wide_words(std::uint64_t seed, std::uint64_t position, std::uint64_t half) noexcept
{
    const std::uint64_t thread = half / 2 % philox_subsequences;
    const std::uint64_t round = half / 2 / philox_subsequences;
    const std::uint64_t first = position / 4 + thread;
    return philox_at(seed, first % philox_subsequences, first / philox_subsequences + 2 * round + half % 2);
}

/// The position after `count` numbers of 64 bits: the first round of which they use no word.
constexpr std::uint64_t after_wide_words(std::uint64_t position, std::uint64_t count) noexcept
{
    const std::uint64_t rounds = (position % 4 + count + philox_round_words - 1) / philox_round_words;
    const std::uint64_t first = (position / 4 + philox_subsequences - 1) / philox_subsequences;
    return (first + 2 * rounds) * philox_round_words;
}

} // namespace coaccel::rand

#endif
