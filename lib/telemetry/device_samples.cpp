#include "telemetry/device_samples.hpp"

#include <coaccel/telemetry/detail/collect_ops.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

namespace coaccel::detail {
namespace {

using telemetry::labels;
using telemetry::metric_writer;

constexpr device_state all_states[] = {device_state::starting, device_state::ready,      device_state::busy,
                                       device_state::suspect,  device_state::rebuilding, device_state::failed,
                                       device_state::stopping, device_state::stopped};

double number(std::uint64_t n) noexcept
{
    return static_cast<double>(n);
}

double seconds(std::chrono::nanoseconds t) noexcept
{
    // Not a multiplication: 1e9 is exact, 1e-9 is not.
    return static_cast<double>(t.count()) / 1e9;
}

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
    out.gauge("coaccel_device_queued", "Calls that wait to be started.", {{"device", name}}, number(s.queued));
    out.gauge("coaccel_device_in_flight", "Calls that were started and have not ended.", {{"device", name}},
              number(s.in_flight));
    for (const auto& [outcome, count] : {std::pair("completed", s.completed), std::pair("failed", s.failed),
                                         std::pair("cancelled", s.cancelled), std::pair("expired", s.expired)})
        out.counter("coaccel_device_calls_total", "Calls that ended, by outcome.",
                    {{"device", name}, {"outcome", outcome}}, number(count));
    out.counter("coaccel_device_ops_total", "Ops of the calls that completed.", {{"device", name}}, number(s.ops));
    for (const auto& [direction, bytes] :
         {std::pair("to_device", s.bytes_to_device), std::pair("to_host", s.bytes_to_host)})
        out.counter("coaccel_device_transferred_bytes_total", "Bytes copied by calls that completed, by direction.",
                    {{"device", name}, {"direction", direction}}, number(bytes));
}

void write_memory(metric_writer& out, const std::string& name, const device_stats& s)
{
    const memory_info& m = s.memory;
    for (const auto& [kind, bytes] : {std::pair("used", m.used), std::pair("free", m.free), std::pair("total", m.total),
                                      std::pair("reserved", m.reserved), std::pair("high_water", m.high_water),
                                      std::pair("pinned_used", m.pinned_used),
                                      std::pair("pinned_reserved", m.pinned_reserved), std::pair("shared", m.shared)})
        out.gauge("coaccel_device_memory_bytes", "The memory of the device, by kind; the kinds overlap.",
                  {{"device", name}, {"kind", kind}}, number(bytes));
    out.gauge("coaccel_device_library_objects", "Handles, plans and generators of vendor libraries.",
              {{"device", name}}, number(m.library_objects));
    out.gauge("coaccel_device_live_buffers", "Buffers that are not released.", {{"device", name}},
              number(s.live_buffers));
}

void write_faults(metric_writer& out, const std::string& name, const device_stats& s)
{
    out.counter("coaccel_device_restarts_total", "Contexts made after the first.", {{"device", name}},
                number(s.restarts));
    out.counter("coaccel_device_reruns_total", "Runs and ops that were started again after the loss of a context.",
                {{"device", name}}, number(s.reruns));
    out.counter("coaccel_device_convicted_total", "Runs and ops that ended a context while nothing else was on it.",
                {{"device", name}}, number(s.convicted));
    out.counter("coaccel_device_plan_instances_total", "Instances of plans that were made.", {{"device", name}},
                number(s.plan_instances));
    out.gauge("coaccel_device_standby_plans", "Plans that the standby has loaded.", {{"device", name}},
              number(s.standby_plans));
    out.gauge("coaccel_device_quarantined_plans", "Plans that are quarantined.", {{"device", name}},
              number(s.quarantined_plans));
    out.gauge("coaccel_device_suspect_buffers", "Durable buffers that must be trusted or cleared before use.",
              {{"device", name}}, number(s.suspect_buffers));
}

void write_latencies(metric_writer& out, const std::string& name, const device_stats& s)
{
    for (const op_latency& row : s.latencies) {
        const labels with{{"device", name}, {"op", row.op}};
        telemetry::summary_snapshot times;
        times.quantiles = {{0.5, seconds(row.p50)}, {0.9, seconds(row.p90)}, {0.99, seconds(row.p99)}};
        times.count = row.count;
        times.sum = seconds(row.sum);
        out.summary("coaccel_device_op_latency_seconds",
                    "Time from the arrival of an op at the device to its end; quantiles since the start.", with,
                    std::move(times));
        out.gauge("coaccel_device_op_latency_max_seconds", "The longest such time since the start.", with,
                  seconds(row.max));
    }
}

} // namespace

void write_device(metric_writer& out, const std::string& name, const device_stats& s)
{
    write_identity(out, name, s);
    write_calls(out, name, s);
    write_memory(out, name, s);
    write_faults(out, name, s);
    write_latencies(out, name, s);
}

void write_mailbox(metric_writer& out, std::string_view name, std::size_t size, std::size_t capacity, bool open)
{
    const labels with{{"mailbox", std::string(name)}};
    out.gauge("coaccel_mailbox_messages", "Messages accepted and not yet received.", with, static_cast<double>(size));
    out.gauge("coaccel_mailbox_capacity", "The maximum number of messages.", with, static_cast<double>(capacity));
    out.gauge("coaccel_mailbox_open", "1 while the mailbox accepts messages, else 0.", with, open ? 1 : 0);
}

} // namespace coaccel::detail
