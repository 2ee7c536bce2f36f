#ifndef COACCEL_CORE_TRACE_HPP
#define COACCEL_CORE_TRACE_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/traceparent.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel {

/// What a trace event describes.
enum class trace_kind : std::uint8_t {
    request,    ///< A request of a client, as a layer above the devices sees it.
    batch,      ///< Requests that run together. `value` is their number.
    run,        ///< A run of a plan or of a graph on a device. `value` is the number of host bytes that it copied.
    op,         ///< An op, or a seq, on a device.
    transfer,   ///< A copy between host and device. `value` is the number of bytes.
    fault,      ///< The loss of a context, or the failure of a device.
    conviction, ///< A request has ended a context while nothing else was on it.
    restart,    ///< A device has a context. The duration is the time without one; `value` is the generation.
    quarantine, ///< Runs of a plan are refused, because too many of them ended a context.
    /// The request `id` belongs to a distributed trace. See trace_buffer::add_traceparent.
    traceparent,
    /// The time of a run of a plan as the backend has measured it. Only its duration is exact: on the time line it ends
    /// with the run. See cuda_options::timed_runs.
    measured,
    span, ///< Anything else that takes time, for other code.
    mark, ///< Anything else without a duration, for other code.
};

/// The name of the kind, such as "transfer"; "unknown" for a value that is no enumerator.
COACCEL_DECL std::string_view to_string(trace_kind kind) noexcept;

/// How the work that an event describes has ended.
enum class trace_outcome : std::uint8_t {
    succeeded, ///< Without an error.
    failed,    ///< With an error that is none of the following.
    cancelled, ///< With operation_aborted.
    expired,   ///< With errc::deadline_exceeded.
    lost,      ///< With its context. A device may have run the request again; each run has an event.
};

/// The name of the outcome, such as "cancelled"; "unknown" for a value that is no enumerator.
COACCEL_DECL std::string_view to_string(trace_outcome outcome) noexcept;

/// A text that a trace_buffer has stored, such as the name of an op. The default is the name "other".
struct trace_name {
    std::uint16_t index = 0; ///< Its position in trace_snapshot::names.

    bool operator==(const trace_name&) const = default; ///< Whether both stand for the same text of one buffer.
};

/// A row of the display for the events of one source, such as a device. The default is the row "other".
struct trace_track {
    std::uint16_t index = 0; ///< Its position in trace_snapshot::tracks.

    bool operator==(const trace_track&) const = default; ///< Whether both stand for the same row of one buffer.
};

/// One event. It has a fixed size, and refers to texts by number.
struct trace_event {
    using clock = std::chrono::steady_clock; ///< The clock of all times.

    clock::time_point begin{};           ///< The start: for a request of a device, when it was given to the context.
    std::chrono::nanoseconds duration{}; ///< From the start to the end.
    std::chrono::nanoseconds queued{};   ///< The wait before the start.
    std::uint64_t id = 0;                ///< From trace_buffer::new_id, if other events refer to it. 0: none.
    /// The event from which an arrow leads to this one. 0: none.
    std::uint64_t parent = 0;
    /// The event to which an arrow leads from this one: for a request, its batch. 0: none.
    std::uint64_t leads_to = 0;
    std::uint64_t value = 0;                          ///< See trace_kind.
    trace_name name{};                                ///< From trace_buffer::intern.
    trace_track track{};                              ///< From trace_buffer::add_track.
    trace_kind kind = trace_kind::span;               ///< What it describes.
    trace_outcome outcome = trace_outcome::succeeded; ///< How it has ended.
    /// From trace_buffer::add_text; 0: no text.
    std::uint16_t text = 0;

    bool operator==(const trace_event&) const = default; ///< Compares all fields.
};

/// The content of a trace_buffer at one time.
struct trace_snapshot {
    std::vector<trace_event> events; ///< From the oldest to the latest, in the order in which they were added.
    std::vector<std::string> names;  ///< The text of each trace_name.
    std::vector<std::string> tracks; ///< The text of each trace_track.
    std::map<std::uint16_t, std::string> texts; ///< The texts that are kept, by trace_event::text.
    std::uint64_t added = 0;                    ///< The number of events that were added to the buffer.
    std::uint64_t lost = 0;                     ///< Those of them that are not in `events`.
    trace_event::clock::time_point start{};     ///< When the buffer was created.
    /// The same time by the clock of the system.
    std::chrono::system_clock::time_point system_start{};
};

class trace_buffer;

namespace detail {

/// So that only `create` makes a trace_buffer.
class trace_buffer_key {
    friend trace_buffer;
    trace_buffer_key() = default;
};

} // namespace detail

/// The latest events of devices and of layers above them, in a ring of fixed size.
///
/// To trace a device, set device_options::trace. telemetry::trace_json makes a file for Perfetto or chrome://tracing of
/// it. A layer above the devices adds its own events, and passes the id of an event as exec_options::trace, so that an
/// arrow leads from it to those of the device.
///
/// Adding an event allocates no memory, waits for no lock and makes no system call. In a full buffer it overwrites the
/// oldest one. It is dropped if other threads are in the middle of writing to every slot, which only a very small
/// buffer makes likely.
///
/// Thread safety: all functions may be called from any thread.
class COACCEL_DECL trace_buffer final : public std::enable_shared_from_this<trace_buffer> {
public:
    static constexpr std::size_t most_events = std::size_t(1) << 24; ///< The largest capacity.
    static constexpr std::size_t most_names = 4096;                  ///< Names beyond this number become "other".
    static constexpr std::size_t most_tracks = 1024;                 ///< Tracks beyond this number become "other".
    static constexpr std::size_t most_texts = 1024;  ///< Texts that are kept; a further one replaces the oldest.
    static constexpr std::size_t longest_text = 256; ///< In bytes; the rest of a longer one is cut off.

    /// A buffer for this number of events, rounded up to a power of two; at least 2, at most `most_events`. An event
    /// takes 72 bytes.
    ///
    /// Exceptions: std::bad_alloc.
    static std::shared_ptr<trace_buffer> create(std::size_t capacity = 16384);

    trace_buffer(detail::trace_buffer_key, std::size_t capacity); ///< Used by `create`.
    trace_buffer(const trace_buffer&) = delete;
    trace_buffer& operator=(const trace_buffer&) = delete;
    ~trace_buffer(); ///< Destroys all events.

    std::size_t capacity() const noexcept; ///< The number of events that fit.

    /// Adds an event.
    void add(const trace_event& e) noexcept;

    /// An id for trace_event::id: never zero, different for each call, and very likely different from the ids of other
    /// processes, so that it can be the parent id of a traceparent.
    std::uint64_t new_id() noexcept;

    /// Says that the event `id` belongs to a distributed trace, whose event `parent.parent_id` is outside this process.
    /// It is an event of its own, so that only requests with a traceparent need the memory for it. Add it right before
    /// the event `id` itself, so that both are overwritten at about the same time.
    void add_traceparent(std::uint64_t id, const traceparent& parent) noexcept;

    /// The name for this text. Equal texts have equal names. Locks a mutex and may allocate memory: call it once for
    /// each name, not for each event. Without memory, or if there are too many names, it returns "other".
    trace_name intern(std::string_view text) noexcept;

    /// Another track. Two tracks of equal names are different tracks.
    trace_track add_track(std::string_view name) noexcept;

    /// Stores a text for trace_event::text, for rare events that need one of their own, such as an error message. Locks
    /// a mutex and may allocate memory. Returns 0 without memory.
    std::uint16_t add_text(std::string_view text) noexcept;

    /// The number of events that were added. It is a little higher if threads were interrupted while they added one,
    /// and were overtaken by a whole round of others. Reads 8 bytes for each event that fits, as `lost` does.
    std::uint64_t added() const noexcept;
    std::uint64_t lost() const noexcept; ///< The number of events that were overwritten or dropped.

    /// The events that are in the buffer. Writers do not wait for it; events that are overwritten meanwhile are not in
    /// the result.
    ///
    /// Exceptions: std::bad_alloc.
    trace_snapshot snapshot() const;

private:
    struct state;
    const std::unique_ptr<state> state_;
};

} // namespace coaccel

#endif
