#ifndef COACCEL_SERVE_BATCHER_TRACE_HPP
#define COACCEL_SERVE_BATCHER_TRACE_HPP

#include "core/trace_outcome.hpp"
#include "serve/later.hpp"

#include <coaccel/core/trace.hpp>
#include <coaccel/serve/detail/batch_run.hpp>

#include <memory>
#include <string>

namespace coaccel::detail {

/// Writes the requests and batches of a batcher into a trace_buffer. Without a buffer, each function costs one test of
/// a pointer.
class batcher_trace {
public:
    using time_point = batch_request::time_point;

    batcher_trace(trace_buffer* buffer, const std::string& name)
        : buffer_(buffer ? buffer->shared_from_this() : nullptr)
    {
        if (!buffer_)
            return;
        track_ = buffer_->add_track(name);
        request_ = buffer_->intern("request");
        batch_ = buffer_->intern("batch");
    }

    /// The runs of the batch belong to it.
    void formed(batch_run& run) noexcept { run.trace = buffer_ ? buffer_->new_id() : 0; }

    void ended(const batch_run& run, const error_code& ec, time_point now) noexcept
    {
        if (!buffer_)
            return;
        trace_event e = event(trace_kind::batch, batch_, ec);
        e.begin = run.formed;
        e.duration = time_between(run.formed, now);
        e.id = run.trace;
        e.value = run.requests;
        buffer_->add(e);
    }

    /// `run`: its batch; null: it has not been in one.
    void answered(const batch_request& r, const batch_run* run, const error_code& ec, time_point now) noexcept
    {
        if (!buffer_)
            return;
        trace_event e = event(trace_kind::request, request_, ec);
        e.begin = run ? run->formed : now;
        e.duration = time_between(e.begin, now);
        e.queued = time_between(r.arrived, e.begin);
        e.parent = r.options.trace;
        e.leads_to = run ? run->trace : 0;
        // Arrows need an id at both ends.
        e.id = run || e.parent != 0 ? buffer_->new_id() : 0;
        buffer_->add(e);
    }

private:
    trace_event event(trace_kind kind, trace_name name, const error_code& ec) const noexcept
    {
        trace_event e;
        e.kind = kind;
        e.name = name;
        e.track = track_;
        e.outcome = outcome_of(ec);
        return e;
    }

    const std::shared_ptr<trace_buffer> buffer_;
    trace_track track_;
    trace_name request_;
    trace_name batch_;
};

} // namespace coaccel::detail

#endif
