#include "device/device_trace.hpp"

#include "core/trace_outcome.hpp"
#include "device/request_name.hpp"

#include <coaccel/device/detail/plan_requests.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace coaccel::detail {
namespace {

trace_kind kind_of(const request& r) noexcept
{
    if (r.pool || r.graph)
        return trace_kind::run;
    return r.bytes > 0 && counted_ops(r).size() == 1 ? trace_kind::transfer : trace_kind::op;
}

} // namespace

std::string_view name_of(loss_cause cause) noexcept
{
    switch (cause) {
    case loss_cause::fault: return "fault";
    case loss_cause::hardware: return "hardware";
    case loss_cause::outside: return "outside";
    }
    return "unknown";
}

device_trace::device_trace(trace_buffer* buffer, std::uint32_t device)
    : buffer_(buffer ? buffer->shared_from_this() : nullptr), device_(device)
{
    if (buffer_)
        track_ = buffer_->add_track("device " + std::to_string(device));
}

trace_name device_trace::name_of(const request& r) noexcept
try {
    if (!r.title && r.ops.empty())
        return {};
    // Without a call for most requests.
    const auto key = !r.title && r.ops.size() == 1 ? r.ops.front().info->id : name_key(r);
    if (key == last_key_ && last_name_ != trace_name())
        return last_name_;
    auto found = names_.find(key);
    if (found == names_.end())
        found = names_.emplace(key, buffer_->intern(name_text(r))).first;
    last_key_ = key;
    last_name_ = found->second;
    return last_name_;
} catch (const std::exception&) {
    return {};
}

trace_event device_trace::event_of(const request& r, const error_code& ec) noexcept
{
    trace_event e;
    e.parent = r.options.trace;
    e.value = r.bytes;
    e.name = name_of(r);
    e.track = track_;
    e.kind = kind_of(r);
    e.outcome = outcome_of(ec);
    return e;
}

void device_trace::add_ended(const request& r, const error_code& ec, clock::time_point end) noexcept
{
    // A request that failed before it was started has only arrived.
    const auto start = std::max(r.launched, r.arrived);
    // The caller of a request that it has given up gets another error, unless the context is lost.
    const bool left = r.given_up != detail::given_up::no && !is_context_lost(ec);
    trace_event e = event_of(r, left ? error_of(r.given_up) : ec);
    e.begin = start;
    e.duration = std::max(end, start) - start;
    e.queued = start - r.arrived;
    buffer_->add(e);
    if (const auto took = r.pool ? static_cast<const run_call&>(r).measured() : std::chrono::nanoseconds();
        took.count())
        add_measured(e, took);
}

void device_trace::add_measured(trace_event e, std::chrono::nanoseconds took) noexcept
try {
    if (measured_track_ == trace_track())
        measured_track_ = buffer_->add_track("device " + std::to_string(device_) + ", measured");
    // What a worker tells may be anything.
    took = std::clamp(took, std::chrono::nanoseconds(), e.duration);
    e.begin += e.duration - took;
    e.duration = took;
    e.queued = {};
    e.value = 0;
    e.track = measured_track_;
    e.kind = trace_kind::measured;
    buffer_->add(e);
} catch (const std::exception&) {
    // No memory for the name of the track: the event is missing.
}

void device_trace::add_refused(const request& r, const error_code& ec, clock::time_point now) noexcept
{
    trace_event e = event_of(r, ec);
    // Such as by a device that has failed: it was on no context.
    if (e.outcome == trace_outcome::lost)
        e.outcome = trace_outcome::failed;
    e.begin = std::max(now, r.arrived);
    e.queued = e.begin - r.arrived;
    buffer_->add(e);
}

void device_trace::add_rare(trace_kind kind, std::string_view name, clock::time_point now,
                            std::string_view text) noexcept
{
    trace_event e;
    e.begin = now;
    e.name = buffer_->intern(name);
    e.track = track_;
    e.kind = kind;
    e.outcome = kind == trace_kind::restart ? trace_outcome::succeeded : trace_outcome::failed;
    e.text = buffer_->add_text(text);
    buffer_->add(e);
}

void device_trace::lost(const error_code& why, std::string_view cause, clock::time_point now) noexcept
try {
    if (!buffer_)
        return;
    if (without_context_ == clock::time_point())
        without_context_ = now;
    add_rare(trace_kind::fault, "context lost", now, std::string(cause).append(": ").append(why.message()));
} catch (const std::exception&) {
    // No memory for the text: the event is missing.
}

void device_trace::failed(const error_code& why, clock::time_point now) noexcept
try {
    if (!buffer_)
        return;
    without_context_ = {};
    add_rare(trace_kind::fault, "device failed", now, why.message());
} catch (const std::exception&) {
    // As above.
}

void device_trace::ready(generation g, std::string_view backend, clock::time_point now) noexcept
{
    if (!buffer_)
        return;
    const auto since = std::exchange(without_context_, {});
    trace_event e;
    e.begin = since == clock::time_point() ? now : std::min(since, now);
    e.duration = now - e.begin;
    e.value = g;
    e.name = buffer_->intern("ready");
    e.track = track_;
    e.kind = trace_kind::restart;
    e.text = buffer_->add_text(backend);
    buffer_->add(e);
}

void device_trace::convicted(std::string_view name, clock::time_point now) noexcept
{
    if (buffer_)
        add_rare(trace_kind::conviction, "convicted", now, name);
}

void device_trace::quarantined(std::string_view plan, clock::time_point now) noexcept
{
    if (buffer_)
        add_rare(trace_kind::quarantine, "quarantined", now, plan);
}

} // namespace coaccel::detail
