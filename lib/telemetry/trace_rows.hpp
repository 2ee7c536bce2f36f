#ifndef COACCEL_TELEMETRY_TRACE_ROWS_HPP
#define COACCEL_TELEMETRY_TRACE_ROWS_HPP

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace coaccel::detail {

/// A period of a track. It ends before `end`, and begins no later than that.
struct trace_period {
    std::uint32_t track = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// The row of each period within its track, from 0: no two periods of a row overlap, and a period gets the first row
/// that is free when it begins.
COACCEL_DECL std::vector<std::uint32_t> assign_trace_rows(std::span<const trace_period> periods);

} // namespace coaccel::detail

#endif
