#ifndef COACCEL_SERVE_WIDE_INTEGER_HPP
#define COACCEL_SERVE_WIDE_INTEGER_HPP

#include <cstdint>

namespace coaccel::detail {

/// For products of a time in nanoseconds and another number: exact, and no sum of them overflows within the life of a
/// program.
__extension__ typedef __int128 wide_integer;

/// The smallest integer that is not below a / b. Preconditions: b is positive.
constexpr wide_integer divide_up(wide_integer a, wide_integer b) noexcept
{
    return a / b + (a % b > 0 ? 1 : 0);
}

} // namespace coaccel::detail

#endif
