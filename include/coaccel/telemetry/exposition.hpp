#ifndef COACCEL_TELEMETRY_EXPOSITION_HPP
#define COACCEL_TELEMETRY_EXPOSITION_HPP

#include <coaccel/telemetry/snapshot.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace coaccel::telemetry {

/// The text formats of metrics that Prometheus reads.
enum class text_format : std::uint8_t {
    prometheus,  ///< The text format of Prometheus, version 0.0.4.
    openmetrics, ///< OpenMetrics, version 1.0.0.
};

/// The media type of a format, for the header field Content-Type.
COACCEL_DECL std::string_view content_type(text_format format) noexcept;

/// The format that a client prefers, from its header field Accept. OpenMetrics only if the client asks for it.
COACCEL_DECL text_format choose_format(std::string_view accept) noexcept;

/// The metrics in a text format.
///
/// Exceptions: std::bad_alloc.
COACCEL_DECL std::string to_text(const snapshot& all, text_format format = text_format::prometheus);

/// The devices with their statistics, and all samples, as a JSON object. Numbers that JSON does not have, such as NaN,
/// are null.
///
/// Exceptions: std::bad_alloc.
COACCEL_DECL std::string to_json(const snapshot& all);

} // namespace coaccel::telemetry

#endif
