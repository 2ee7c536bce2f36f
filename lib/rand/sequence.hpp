#ifndef COACCEL_RAND_SEQUENCE_HPP
#define COACCEL_RAND_SEQUENCE_HPP

#include "rand/philox.hpp"

#include <coaccel/ops/rand/distributions.hpp>

namespace coaccel::rand {

/// The position of a generator after an op that begins at `position`. On every backend the same, so that the numbers of
/// philox are the same too. No two ops use the same words of philox.
template <class Op>
constexpr std::uint64_t position_after(const Op& op, std::uint64_t position) noexcept
{
    const std::uint64_t count = op.dst.size();
    if (op.from.options().algorithm != algorithm::philox)
        return position + count;
    if constexpr (std::same_as<Op, bits<std::uint64_t>>)
        return position + 2 * count;
    else if constexpr (std::same_as<Op, uniform<double>> || std::same_as<Op, normal<double>> ||
                       std::same_as<Op, log_normal<double>>)
        return after_wide_words(position, count);
    else
        return position + count;
}

/// The number of generators whose state a context keeps.
inline constexpr std::size_t most_generators = 256;

} // namespace coaccel::rand

#endif
