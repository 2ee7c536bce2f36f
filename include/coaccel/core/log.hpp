#ifndef COACCEL_CORE_LOG_HPP
#define COACCEL_CORE_LOG_HPP

#include <coaccel/core/config.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

namespace coaccel {

/// The importance of a message, in ascending order.
enum class log_level : std::uint8_t {
    /// Details for debugging. The library logs no messages of this level.
    debug,
    /// The start and the regular shutdown of devices and workers.
    info,
    /// Faults that the library recovers from, and what workers write to their standard error.
    warning,
    /// A device or an actor that has failed and is not restarted.
    error,
    /// As a threshold: nothing is logged.
    off,
};

/// The name of the level, such as "warning"; "unknown" for a value that is no enumerator.
COACCEL_DECL std::string_view to_string(log_level level) noexcept;

/// Receives one message, without a line terminator.
using log_sink = std::function<void(log_level level, std::string_view message)>;

/// Sends the messages of all devices of the process, from level `least` upwards, to `sink`. An empty sink stands for
/// the standard error. The default is the standard error, from log_level::warning upwards.
///
/// The library calls the sink on its own thread, one call at a time, with no lock held. The sink may block and may call
/// the library; while it blocks, messages wait in a bounded queue. Messages that do not fit are dropped, and a message
/// reports how many. A message for which the sink throws is lost.
///
/// Messages that still wait go to the new sink. The former sink is no longer being called when the function returns,
/// unless the function was called from within that sink.
///
/// Exceptions: std::bad_alloc; the former sink and level then stay.
/// Thread safety: any thread, at any time. A forked child keeps the sink.
COACCEL_DECL void set_log_sink(log_level least, log_sink sink);

/// Blocks until the messages logged so far have been delivered; returns false on timeout, and when called from a sink.
/// At a normal exit of the program the library does the same for at most half a second; call it before _exit() or
/// abort().
COACCEL_DECL bool flush_log(std::chrono::nanoseconds timeout = std::chrono::seconds(1)) noexcept;

namespace detail {

/// Whether messages of this level are logged. Costs one load; call it before composing a message.
COACCEL_DECL bool log_enabled(log_level level) noexcept;

/// Queues a message; never waits for the sink, and may be called with locks held. A message begins with the component
/// and its number, as in "device 3: …".
COACCEL_DECL void log(log_level level, std::string_view message) noexcept;

/// The same for one receiver instead of the sink, at any level.
COACCEL_DECL void log_to(void (*receiver)(std::string_view message), std::string_view message) noexcept;

} // namespace detail

} // namespace coaccel

#endif
