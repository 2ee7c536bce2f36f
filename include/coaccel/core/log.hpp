#ifndef COACCEL_CORE_LOG_HPP
#define COACCEL_CORE_LOG_HPP

#include <coaccel/core/config.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

namespace coaccel {

enum class log_level : std::uint8_t {
    debug,
    /// The start and the orderly end of devices and workers.
    info,
    /// Faults that the library recovers from, and what workers write to their standard error.
    warning,
    /// A device or an actor that has failed and is not restarted.
    error,
    /// As a threshold: nothing is logged.
    off,
};

/// Gets one message, without a line end.
using log_sink = std::function<void(log_level level, std::string_view message)>;

/// Sends messages of level `least` and above to `sink`, of all devices of the process. An empty sink: to the standard
/// error. Without a call it is the standard error, from log_level::warning on.
///
/// The sink is called on a thread of the library, one call at a time, with no lock held. It may block and may call the
/// library; while it blocks, messages wait in a queue of bounded length. What the queue has no room for is dropped,
/// and a message says how many were. A message for which the sink throws is lost.
///
/// Messages that still wait go to the new sink. The former sink is not being called when the function returns, unless
/// the call was made from within it.
///
/// Thread safety: any thread, at any time. A forked child keeps the sink.
COACCEL_DECL void set_log_sink(log_level least, log_sink sink);

/// Blocks until the messages logged so far have been delivered; false when the time did not suffice. At a normal end of
/// the program the library does the same, for half a second at most; call it before _exit() or abort().
COACCEL_DECL bool flush_log(std::chrono::nanoseconds timeout = std::chrono::seconds(1)) noexcept;

namespace detail {

/// Whether messages of this level are wanted: costs one load, so ask before a message is put together.
COACCEL_DECL bool log_enabled(log_level level) noexcept;

/// Queues a message; never blocks, and may be called with locks held. Begins with the part and its number, as in
/// "device 3: …".
COACCEL_DECL void log(log_level level, std::string_view message) noexcept;

/// The same for one receiver instead of the sink, whatever the level.
COACCEL_DECL void log_to(void (*receiver)(std::string_view message), std::string_view message) noexcept;

} // namespace detail

} // namespace coaccel

#endif
