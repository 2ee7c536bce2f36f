#ifndef COACCEL_SERVE_LATER_HPP
#define COACCEL_SERVE_LATER_HPP

#include <chrono>

namespace coaccel::detail {

/// The sum, or the largest time point if the sum is out of range. Preconditions: d is not negative.
inline std::chrono::steady_clock::time_point later(std::chrono::steady_clock::time_point t,
                                                   std::chrono::nanoseconds d) noexcept
{
    using time_point = std::chrono::steady_clock::time_point;
    return d < time_point::max() - t ? t + d : time_point::max();
}

} // namespace coaccel::detail

#endif
