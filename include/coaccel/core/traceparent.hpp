#ifndef COACCEL_CORE_TRACEPARENT_HPP
#define COACCEL_CORE_TRACEPARENT_HPP

#include <coaccel/core/result.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace coaccel {

/// The place of a request in a distributed trace: the content of the HTTP header `traceparent` of the W3C
/// recommendation "Trace Context".
struct traceparent {
    std::array<std::uint8_t, 16> trace_id{}; ///< Identifies the whole trace; not all zero.
    std::uint64_t parent_id = 0;             ///< The caller's event ("span"); not zero.
    std::uint8_t flags = 0;                  ///< Bit 0: the trace is recorded. Bit 1: `trace_id` is random.

    bool operator==(const traceparent&) const = default; ///< Compares all fields.
};

/// Reads the value of the header. Of a version later than 00 it reads what version 00 defines, as the recommendation
/// says. Flags other than bits 0 and 1 are ignored.
///
/// Errors: errc::invalid_argument, with the place of the error. Upper-case digits, white space, zero ids and the
/// version ff are errors.
COACCEL_DECL result<traceparent> parse_traceparent(std::string_view text);

/// The value of the header for a request to another server, in version 00. To pass a trace on, set `parent_id` to the
/// id of an event of this process, from trace_buffer::new_id.
COACCEL_DECL std::string to_string(const traceparent& t);

} // namespace coaccel

#endif
