#ifndef COACCEL_DEVICE_DEVICE_TRACE_HPP
#define COACCEL_DEVICE_DEVICE_TRACE_HPP

#include "context/context.hpp"

#include <coaccel/core/trace.hpp>
#include <coaccel/device/device_state.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace coaccel::detail {

/// Writes what happens to a device into a trace_buffer. Without a buffer, each function costs one test of a pointer.
class COACCEL_DECL device_trace {
public:
    /// `buffer`: null, or owned by a shared_ptr.
    device_trace(trace_buffer* buffer, std::uint32_t device);

    /// A request has left its context at this time.
    void ended(const request& r, const error_code& ec, clock::time_point end) noexcept
    {
        if (buffer_)
            add_ended(r, ec, end);
    }

    /// A request is answered. It has an event of its own if it was never given to a context.
    void answered(const request& r, const error_code& ec, clock::time_point now) noexcept
    {
        if (buffer_ && r.call == request_kind::exec && r.launched == clock::time_point())
            add_refused(r, ec, now);
    }

    /// The device has lost its context, or could not get one.
    void lost(const error_code& why, std::string_view cause, clock::time_point now) noexcept;

    /// The device does not get another context.
    void failed(const error_code& why, clock::time_point now) noexcept;

    /// The device has a context.
    void ready(generation g, std::string_view backend, clock::time_point now) noexcept;

    /// The request or plan of this name has ended a context.
    void convicted(std::string_view name, clock::time_point now) noexcept;

    void quarantined(std::string_view plan, clock::time_point now) noexcept;

private:
    void add_ended(const request& r, const error_code& ec, clock::time_point end) noexcept;
    void add_measured(trace_event e, std::chrono::nanoseconds took) noexcept;
    void add_refused(const request& r, const error_code& ec, clock::time_point now) noexcept;
    void add_rare(trace_kind kind, std::string_view name, clock::time_point now, std::string_view text) noexcept;
    trace_event event_of(const request& r, const error_code& ec) noexcept;
    trace_name name_of(const request& r) noexcept;

    const std::shared_ptr<trace_buffer> buffer_;
    const std::uint32_t device_;
    trace_track track_;
    /// The default until a run was measured.
    trace_track measured_track_;
    boost::unordered_flat_map<std::uint64_t, trace_name> names_;
    /// The last lookup: usually the next one is the same.
    std::uint64_t last_key_ = 0;
    trace_name last_name_;
    /// Unless zero, the device has had no context since then.
    clock::time_point without_context_{};
};

std::string_view name_of(loss_cause cause) noexcept;

} // namespace coaccel::detail

#endif
