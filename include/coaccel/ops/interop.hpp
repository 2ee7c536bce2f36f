#ifndef COACCEL_OPS_INTEROP_HPP
#define COACCEL_OPS_INTEROP_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/op.hpp>

#include <string_view>

// The order between ops and CUDA code that has its own streams. Only on a GPU in this process; the names and semantics
// are those of cudaStreamWaitEvent and cudaEventRecord.
namespace coaccel::interop {

/// A cudaEvent_t or a CUevent, which are the same type.
using native_event = void*;

/// Waits for an event that other code has recorded. Ops on `data` that are started later run after it, on the GPU,
/// whether this op is awaited or not; awaiting it waits for the event. The latest record of the event before the op is
/// started counts; an event that was never recorded counts as passed. The event must not be destroyed before the op
/// completes, and must not have been recorded in a stream capture. Other ops on the same lane may wait too. If the
/// event does not pass within context_options::hang_timeout, the context is lost, as with an op that hangs. Not on the
/// host backend, in workers and in plans.
template <element T>
struct wait_event {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "interop.wait_event";
    static constexpr library lib = library::user;
    static constexpr op_role role = op_role::wait;

    native_event event = nullptr; ///< The event to wait for.
    inout<T> data;                ///< The elements that the other code uses until the event.

    error_code check() const noexcept
    {
        if (!event)
            return detail::op_error(errc::invalid_argument, name, {"event is null"});
        return data.size() != 0 ? error_code{} : detail::is_empty(name, "data");
    }

    BOOST_DESCRIBE_CLASS(wait_event, (), (event, data), (), ())
};

/// Records an event for other code, after all ops on `data` that were started before. It completes as soon as the
/// record is on a stream, not when the event has passed: from then on, cudaStreamWaitEvent and cudaEventSynchronize
/// wait for those ops. In a seq it completes with the other ops. The event must have been created in the primary
/// context of the device's GPU, as by cudaEventCreate, and must not be destroyed before the op completes. Not on the
/// host backend, in workers and in plans.
template <element T>
struct record_event {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "interop.record_event";
    static constexpr library lib = library::user;
    static constexpr op_role role = op_role::record;

    native_event event = nullptr; ///< The event to record.
    inout<T> data;                ///< The elements that the other code uses after the event.

    error_code check() const noexcept
    {
        if (!event)
            return detail::op_error(errc::invalid_argument, name, {"event is null"});
        return data.size() != 0 ? error_code{} : detail::is_empty(name, "data");
    }

    BOOST_DESCRIBE_CLASS(record_event, (), (event, data), (), ())
};

/// The ops of this header for one element type.
template <element T>
using ops_for = type_list<wait_event<T>, record_event<T>>;

} // namespace coaccel::interop

#endif
