#ifndef COACCEL_TELEMETRY_NUMBER_TEXT_HPP
#define COACCEL_TELEMETRY_NUMBER_TEXT_HPP

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace coaccel::detail {

/// Appends the shortest text that gives the same number. Independent of the locale.
inline void append_number(std::string& out, double value)
{
    char text[32];
    // Without an exponent as far as doubles have all integers.
    const bool integer = std::abs(value) < 9007199254740992.0 && std::trunc(value) == value;
    const auto end = integer ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value))
                             : std::to_chars(text, text + sizeof text, value);
    out.append(text, end.ptr);
}

} // namespace coaccel::detail

#endif
