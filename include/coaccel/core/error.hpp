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

/// What coaccel itself reports. Vendor libraries report through categories of their own.
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
    /// A host span does not have the length the transfer needs.
    length_mismatch,
    /// The device's backend does not implement this op.
    unsupported_op,
    /// An option is out of range or contradicts another.
    invalid_option,
    /// A second consumer asked for messages while one was waiting.
    already_waiting,
    /// The memory limit is reached, also after a trim and a second try.
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
    /// The device will not come back: its restart budget is spent, or its fault cannot be mended in this process.
    device_failed,
    /// This build, or this machine, does not have the requested backend.
    backend_unavailable,
    /// The backend refused to start.
    start_failed,
    /// The context behind the device died; everything that was outstanding on it is lost.
    context_lost,
    /// The hardware or its driver is gone.
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
    /// The driver has no device of this ordinal.
    no_device,
    /// The kernel source does not compile; the message is the compiler's log.
    compile_failed,
    /// The arguments of a launch are not those of its kernel.
    argument_mismatch,
    /// A grid, block or amount of shared memory is beyond what the device can launch.
    invalid_launch,
    /// The op needs code or memory of this process, which a worker process does not have.
    not_isolatable,
    /// The worker program was not found or cannot be run.
    worker_missing,
    /// The worker program is of another version or build.
    worker_mismatch,
    /// The worker process ended by itself.
    worker_exited,
    /// The worker process was ended by a signal.
    worker_killed,
    /// The worker process gave no sign of life for too long, and was ended.
    worker_hung,
    /// The worker process did not become ready in time, and was ended.
    worker_late,
    /// What the worker process wrote to the shared memory makes no sense; it was ended.
    worker_corrupted,
    /// The plug-in was not found, cannot be loaded, or is none of coaccel's.
    plugin_missing,
    /// No plug-in in the process of the device's context has a function of this name.
    function_missing,
    /// The actor has ended for good, or was stopped while it held this message.
    actor_stopped,
};

/// The classes of failure a caller can act on; compare an error_code with one of these.
enum class fault {
    /// The request itself is wrong; repeating it will not help.
    caller = 1,
    /// Resources are short or time ran out; repeating it later may help.
    busy,
    /// A vendor library refused or is not there; the device goes on.
    library,
    /// The context died with this op outstanding, or with a buffer it names; the device is rebuilding, has been
    /// rebuilt, or has failed. Repeating the work from its uploads on may help.
    context_lost,
    /// The device has failed, or its hardware is gone.
    device_lost,
    /// The device, mailbox or actor has stopped.
    stopped,
};

COACCEL_DECL const boost::system::error_category& coaccel_category() noexcept;
COACCEL_DECL const boost::system::error_category& fault_category() noexcept;

inline error_code make_error_code(errc e) noexcept
{
    return {static_cast<int>(e), coaccel_category()};
}

/// An error code with a message of its own, such as the name of a missing file or the log of a compiler.
/// The messages of the last 256 refused requests are kept, and of the last 256 other errors, or of at least 128 where
/// one came again; an older one falls back to the message of its errc.
COACCEL_DECL error_code note_error(errc what, std::string message);

/// The errc behind a code of coaccel's, noted or plain; zero for any other code.
COACCEL_DECL errc errc_of(const error_code& ec) noexcept;

inline boost::system::error_condition make_error_condition(fault f) noexcept
{
    return {static_cast<int>(f), fault_category()};
}

/// True when the op was outstanding on a context that died, or named a buffer of one.
COACCEL_DECL bool is_context_lost(const error_code& ec) noexcept;

/// True when the device behind the op will never answer again.
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

/// True for a noted error too.
inline bool operator==(const error_code& ec, errc e) noexcept
{
    return errc_of(ec) == e;
}

} // namespace coaccel

#endif
