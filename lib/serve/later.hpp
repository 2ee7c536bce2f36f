#ifndef COACCEL_SERVE_LATER_HPP
#define COACCEL_SERVE_LATER_HPP

#include <chrono>

namespace coaccel::detail {

/// The sum, or the largest time point if the sum is out of range. Preconditions: d is not negative.
inline std::chrono::steady_clock::time_point later(std::chrono::steady_clock::time_point t,
                                                   std::chrono::nanoseconds d) noexcept
{
    using time_point = std::chrono::steady_clock::time_point;
    return t < time_point() || d < time_point::max() - t ? t + d : time_point::max();
}

/// The time from one time point to a later one, or the longest time if it is out of range. Zero if it is not later.
inline std::chrono::nanoseconds time_between(std::chrono::steady_clock::time_point from,
                                             std::chrono::steady_clock::time_point to) noexcept
{
    using time_point = std::chrono::steady_clock::time_point;
    if (to <= from)
        return std::chrono::nanoseconds::zero();
    return from >= time_point() || to < time_point::max() + from.time_since_epoch() ? to - from
                                                                                    : std::chrono::nanoseconds::max();
}

} // namespace coaccel::detail

#endif
