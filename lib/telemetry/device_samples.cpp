#include "telemetry/device_samples.hpp"

#include "telemetry/units.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace coaccel::detail {
namespace {

using telemetry::histogram_snapshot;
using telemetry::labels;
using telemetry::metric_writer;

constexpr device_state all_states[] = {device_state::starting, device_state::ready,      device_state::busy,
                                       device_state::suspect,  device_state::rebuilding, device_state::failed,
                                       device_state::stopping, device_state::stopped};

void write_identity(metric_writer& out, const std::string& name, const device_stats& s)
{
    out.gauge("coaccel_device_info", "The backend and the hardware of the device; the value is 1.",
              {{"device", name}, {"backend", s.backend}, {"hardware", s.hardware.name}}, 1);
    for (const device_state state : all_states)
        out.gauge("coaccel_device_state", "1 for the state that the device is in, 0 for the others.",
                  {{"device", name}, {"state", std::string(to_string(state))}}, s.state == state ? 1 : 0);
    out.gauge("coaccel_device_generation", "The number of the latest context; the first is 1.", {{"device", name}},
              s.generation);
}

void write_calls(metric_writer& out, const std::string& name, const device_stats& s)
{
    out.gauge("coaccel_device_queued", "Calls that wait to be started.", {{"device", name}}, as_number(s.queued));
    out.gauge("coaccel_device_in_flight", "Calls that were started and have not ended.", {{"device", name}},
              as_number(s.in_flight));
    for (const auto& [outcome, count] : {std::pair("completed", s.completed), std::pair("failed", s.failed),
                                         std::pair("cancelled", s.cancelled), std::pair("expired", s.expired)})
        out.counter("coaccel_device_calls_total", "Calls that ended, by outcome.",
                    {{"device", name}, {"outcome", outcome}}, as_number(count));
    out.counter("coaccel_device_ops_total", "Ops of the calls that completed.", {{"device", name}}, as_number(s.ops));
    for (const auto& [direction, bytes] :
         {std::pair("to_device", s.bytes_to_device), std::pair("to_host", s.bytes_to_host)})
        out.counter("coaccel_device_transferred_bytes_total", "Bytes copied by calls that completed, by direction.",
                    {{"device", name}, {"direction", direction}}, as_number(bytes));
}

void write_memory(metric_writer& out, const std::string& name, const device_stats& s)
{
    const memory_info& m = s.memory;
    for (const auto& [kind, bytes] : {std::pair("used", m.used), std::pair("free", m.free), std::pair("total", m.total),
                                      std::pair("reserved", m.reserved), std::pair("high_water", m.high_water),
                                      std::pair("pinned_used", m.pinned_used),
                                      std::pair("pinned_reserved", m.pinned_reserved), std::pair("shared", m.shared)})
        out.gauge("coaccel_device_memory_bytes", "The memory of the device, by kind; the kinds overlap.",
                  {{"device", name}, {"kind", kind}}, as_number(bytes));
    out.gauge("coaccel_device_library_objects", "Handles, plans and generators of vendor libraries.",
              {{"device", name}}, as_number(m.library_objects));
    out.gauge("coaccel_device_live_buffers", "Buffers that are not released.", {{"device", name}},
              as_number(s.live_buffers));
}

void write_faults(metric_writer& out, const std::string& name, const device_stats& s)
{
    out.counter("coaccel_device_restarts_total", "Contexts made after the first.", {{"device", name}},
                as_number(s.restarts));
    out.counter("coaccel_device_reruns_total", "Runs and ops that were started again after the loss of a context.",
                {{"device", name}}, as_number(s.reruns));
    out.counter("coaccel_device_convicted_total", "Runs and ops that ended a context while nothing else was on it.",
                {{"device", name}}, as_number(s.convicted));
    out.counter("coaccel_device_plan_instances_total", "Instances of plans that were made.", {{"device", name}},
                as_number(s.plan_instances));
    out.gauge("coaccel_device_standby_plans", "Plans that the standby has loaded.", {{"device", name}},
              as_number(s.standby_plans));
    out.gauge("coaccel_device_quarantined_plans", "Plans that are quarantined.", {{"device", name}},
              as_number(s.quarantined_plans));
    out.gauge("coaccel_device_suspect_buffers", "Durable buffers that must be trusted or cleared before use.",
              {{"device", name}}, as_number(s.suspect_buffers));
}

void write_latencies(metric_writer& out, const std::string& name, const device_stats& s)
{
    for (const op_latency& row : s.latencies) {
        const labels with{{"device", name}, {"op", row.op}};
        telemetry::summary_snapshot times;
        times.quantiles = {{0.5, as_seconds(row.p50)}, {0.9, as_seconds(row.p90)}, {0.99, as_seconds(row.p99)}};
        times.count = row.count;
        times.sum = as_seconds(row.sum);
        out.summary("coaccel_device_op_latency_seconds",
                    "Time from the arrival of an op at the device to its end; quantiles since the start.", with,
                    std::move(times));
        out.gauge("coaccel_device_op_latency_max_seconds", "The longest such time since the start.", with,
                  as_seconds(row.max));
    }
}

/// The plan's own name; what the plans without a name are called in the statistics.
std::string plan_name(const plan_stats& p)
{
    constexpr std::string_view prefix = "plan ";
    return p.op.starts_with(prefix) ? p.op.substr(prefix.size()) : p.op;
}

histogram_snapshot as_histogram(const op_latency& row)
{
    histogram_snapshot h;
    h.count = row.count;
    h.sum = as_seconds(row.sum);
    for (const latency_bucket& b : row.buckets)
        h.buckets.push_back({as_seconds(b.upper), b.count});
    // About 1 us to 34 s; each is an upper bound of buckets.
    for (int power = 10; power <= 35; ++power)
        h.bounds.push_back(as_seconds(std::chrono::nanoseconds(std::int64_t{1} << power)));
    return h;
}

void write_plan(metric_writer& out, const std::string& device, const device_stats& s, const plan_stats& p)
{
    const labels with{{"device", device}, {"plan", plan_name(p)}};
    const auto and_also = [&](std::string name, std::string value) {
        labels more = with;
        more.push_back({std::move(name), std::move(value)});
        return more;
    };
    for (const auto& [outcome, count] : {std::pair("completed", p.completed), std::pair("failed", p.failed),
                                         std::pair("cancelled", p.cancelled), std::pair("expired", p.expired)})
        out.counter("coaccel_plan_runs_total", "Runs of the plan that ended, by outcome.", and_also("outcome", outcome),
                    as_number(count));
    out.counter("coaccel_plan_reruns_total", "Runs that were started again after the loss of a context.", with,
                as_number(p.reruns));
    for (const auto& [direction, bytes] :
         {std::pair("to_device", p.bytes_to_device), std::pair("to_host", p.bytes_to_host)})
        out.counter("coaccel_plan_transferred_bytes_total", "Bytes copied by runs that completed, by direction.",
                    and_also("direction", direction), as_number(bytes));
    out.gauge("coaccel_plan_instances", "Instances that are loaded.", with, as_number(p.instances));
    out.gauge("coaccel_plan_running", "Instances that runs use.", with, as_number(p.running));
    out.gauge("coaccel_plan_waiting", "Runs that wait for an instance.", with, as_number(p.waiting));
    out.gauge("coaccel_plan_quarantined", "Plans of this name that are quarantined.", with, as_number(p.quarantined));
    const auto row = std::ranges::find(s.latencies, p.op, &op_latency::op);
    out.histogram("coaccel_plan_run_seconds", "Time from the arrival of a run at the device to its end.", with,
                  as_histogram(row != s.latencies.end() ? *row : op_latency{}));
}

} // namespace

void write_device(metric_writer& out, const std::string& name, const device_stats& s)
{
    write_identity(out, name, s);
    write_calls(out, name, s);
    write_memory(out, name, s);
    write_faults(out, name, s);
    write_latencies(out, name, s);
    for (const plan_stats& p : s.plans)
        write_plan(out, name, s, p);
}

} // namespace coaccel::detail
