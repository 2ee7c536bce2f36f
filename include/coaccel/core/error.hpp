#ifndef COACCEL_CORE_ERROR_HPP
#define COACCEL_CORE_ERROR_HPP

#include <coaccel/core/config.hpp>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>

#include <string>
#include <type_traits>

namespace coaccel {

using boost::system::error_code;

/// The errors of coaccel itself. Vendor libraries have their own error categories.
enum class errc {
    /// A parameter is outside its domain.
    invalid_argument = 1,
    /// A product of sizes does not fit in 64 bits.
    size_overflow,
    /// A leading dimension or stride is smaller than the shape it describes.
    leading_dimension,
    /// A ref reaches beyond its buffer, or an op needs more elements than its ref names.
    out_of_bounds,
    /// A ref belongs to another device.
    wrong_device,
    /// A ref belongs to an older generation of its device's context.
    stale_ref,
    /// The buffer a ref names has been released.
    released_ref,
    /// A ref's element type is not the one its buffer holds.
    wrong_dtype,
    /// An output overlaps another operand where the op forbids it.
    overlap,
    /// A host span or an operand does not have the length that the operation needs.
    length_mismatch,
    /// The device's backend does not implement this op, or this version of the library does not know it.
    unsupported_op,
    /// An option is out of range or contradicts another.
    invalid_option,
    /// A second consumer asked for messages while one was waiting.
    already_waiting,
    /// The memory limit is reached, even after a trim and a second attempt.
    out_of_memory,
    /// The bounded queue is full.
    queue_full,
    /// The deadline passed before the operation ended, or before a reply came.
    deadline_exceeded,
    /// The mailbox or watch is closed.
    closed,
    /// The actor dropped the request without answering it.
    no_reply,
    /// The actor failed while it held this message.
    actor_failed,
    /// The device is shutting down or has been shut down.
    device_stopped,
    /// The device has failed: its restart budget is spent, or its fault cannot be repaired in this process.
    device_failed,
    /// This build, or this machine, does not have the requested backend.
    backend_unavailable,
    /// The backend refused to start.
    start_failed,
    /// The context behind the device died; all work outstanding on it is lost.
    context_lost,
    /// The hardware or its driver is no longer available.
    device_lost,
    /// A result that was never assigned.
    no_value,
    /// A backend broke its contract.
    backend_error,
    /// A function given by the caller threw.
    user_exception,
    /// A vendor library was not found, or the system refused to open it.
    library_missing,
    /// A vendor library is older than what coaccel needs.
    library_too_old,
    /// The driver has no device with this ordinal.
    no_device,
    /// The kernel source does not compile; the message is the compiler's log.
    compile_failed,
    /// The arguments of a launch do not match its kernel.
    argument_mismatch,
    /// A grid, block or amount of shared memory exceeds the device's limits.
    invalid_launch,
    /// The op needs code or memory of this process, which a worker process does not have.
    not_isolatable,
    /// The worker program was not found or cannot be run.
    worker_missing,
    /// The worker program has another version or build.
    worker_mismatch,
    /// The worker process ended by itself.
    worker_exited,
    /// The worker process was terminated by a signal.
    worker_killed,
    /// The worker process sent no heartbeat for too long and was killed.
    worker_hung,
    /// The worker process did not become ready in time and was killed.
    worker_late,
    /// The worker process wrote invalid data to the shared memory and was killed.
    worker_corrupted,
    /// The plug-in was not found, cannot be loaded, or is not a coaccel plug-in.
    plugin_missing,
    /// No plug-in in the process of the device's context has a function with this name.
    function_missing,
    /// The actor has ended permanently, or was stopped while it held this message.
    actor_stopped,
    /// The system refused to open, read, write or replace a file.
    file_failed,
    /// A file is damaged, or its content is of another kind.
    file_invalid,
    /// A file has another version of its format.
    file_version,
    /// The plan uses something that exists only in this process, so it cannot be saved.
    not_savable,
    /// Too many runs or loads of the plan have ended the context of its device. plan::async_revive allows runs again; a
    /// load is allowed again after the time in the message, or after device::async_revive.
    plan_quarantined,
    /// Durable memory may have been half-written when a context was lost. For a buffer, device::async_trust or
    /// device::async_clear decides what becomes of it; for a state of a plan, plan::async_revive.
    buffer_suspect,
    /// A function of a plug-in has another version than the call or the plan needs.
    function_version,
};

/// The classes of failure a caller can act on; compare an error_code with one of these.
enum class fault {
    /// The request itself is wrong; repeating it will not help.
    caller = 1,
    /// Resources are short or time ran out; repeating it later may help.
    busy,
    /// A vendor library reported an error or is missing; the device keeps working.
    library,
    /// The context died while this op, or a buffer that it names, was on it; the device is rebuilding, has been
    /// rebuilt, or has failed. Repeating the work, including its uploads, may help.
    context_lost,
    /// The device has failed, or its hardware is no longer available.
    device_lost,
    /// The device, plan, durable buffer, mailbox or actor cannot be used until the program intervenes, or never again.
    stopped,
};

/// The category of errc, named "coaccel".
COACCEL_DECL const boost::system::error_category& coaccel_category() noexcept;
/// The category of fault, named "coaccel.fault".
COACCEL_DECL const boost::system::error_category& fault_category() noexcept;

/// The error code of an errc. Boost.System calls it for the conversion of errc to error_code.
inline error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), coaccel_category()};
}

/// An error code with its own message, such as the name of a missing file or the log of a compiler. The messages of the
/// last 256 refused requests and of the last 256 other errors are kept. A code whose message was repeated is shared,
/// and kept for at least 128 further errors. An older code falls back to the message of its errc.
///
/// Exceptions: only std::bad_alloc from copying `message`; none if it is moved in.
COACCEL_DECL error_code make_error_with_message(errc what, std::string message);

/// The errc of an error code of coaccel, with or without its own message; zero for any other code.
COACCEL_DECL errc errc_of(const error_code& ec) noexcept;

/// The condition of a fault class. Boost.System calls it for `ec == fault::busy`.
inline boost::system::error_condition make_error_condition(fault f) noexcept
{
    return {static_cast<int>(f), fault_category()};
}

/// True when the op was outstanding on a context that died, or named a buffer of one.
COACCEL_DECL bool is_context_lost(const error_code& ec) noexcept;

/// True when the device has failed or its hardware is no longer available.
COACCEL_DECL bool is_device_lost(const error_code& ec) noexcept;

/// True when the request itself was wrong.
COACCEL_DECL bool is_caller_error(const error_code& ec) noexcept;

/// True when the same request may succeed later.
COACCEL_DECL bool is_busy(const error_code& ec) noexcept;

} // namespace coaccel

namespace boost::system {

template <>
struct is_error_code_enum<coaccel::errc> : std::true_type {};

template <>
struct is_error_condition_enum<coaccel::fault> : std::true_type {};

} // namespace boost::system

namespace coaccel {

/// Also true for an error with its own message.
inline bool operator==(const error_code& ec, errc e) noexcept
{
    return errc_of(ec) == e;
}

} // namespace coaccel

#endif
