#ifndef COACCEL_TELEMETRY_UNITS_HPP
#define COACCEL_TELEMETRY_UNITS_HPP

#include <chrono>
#include <cstdint>

namespace coaccel::detail {

/// A count as samples and JSON have it.
constexpr double as_number(std::uint64_t n) noexcept
{
    return static_cast<double>(n);
}

constexpr double as_seconds(std::chrono::nanoseconds t) noexcept
{
    // Not a multiplication: 1e9 is exact, 1e-9 is not.
    return static_cast<double>(t.count()) / 1e9;
}

} // namespace coaccel::detail

#endif
