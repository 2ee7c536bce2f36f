#ifndef COACCEL_TELEMETRY_TRACE_JSON_HPP
#define COACCEL_TELEMETRY_TRACE_JSON_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/core/trace.hpp>

#include <string>

namespace coaccel::telemetry {

/// The events in the Trace Event Format, a JSON text that Perfetto (ui.perfetto.dev) and chrome://tracing display. Each
/// track is a process of the display; events of a track that overlap in time are on separate rows.
///
/// An arrow between two events is left out if one of them was overwritten.
///
/// Exceptions: std::bad_alloc.
COACCEL_DECL std::string trace_json(const trace_snapshot& events);

/// The events that are in the buffer. Writers of the buffer do not wait for it.
///
/// Exceptions: std::bad_alloc.
COACCEL_DECL std::string trace_json(const trace_buffer& events);

/// Writes the same text to a file. The file is replaced as a whole: after an error it has its old content. The call
/// blocks until the content is on the disk.
///
/// Errors: errc::file_failed, with a message that names the path and the reason of the system.
/// Exceptions: std::bad_alloc. The file then has its old content.
[[nodiscard]] COACCEL_DECL result<void> write_trace(const trace_buffer& events, const std::string& path);

} // namespace coaccel::telemetry

#endif
