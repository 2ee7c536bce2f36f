#include "telemetry/json_writer.hpp"

#include <coaccel/telemetry/exposition.hpp>

#include <chrono>
#include <string>
#include <unistd.h>

namespace coaccel::telemetry {
namespace {

using detail::json_writer;

double count(std::uint64_t n) noexcept
{
    return static_cast<double>(n);
}

double in_seconds(std::chrono::nanoseconds t) noexcept
{
    return static_cast<double>(t.count()) / 1e9;
}

/// Differs between processes, so that a reader can tell a restart from counters that go back.
const std::string& process_id()
{
    static const std::string id =
        std::to_string(::getpid()) + "-" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    return id;
}

void write_memory_object(json_writer& out, const memory_info& m)
{
    out.key("memory");
    out.begin_object();
    out.member("used", count(m.used));
    out.member("free", count(m.free));
    out.member("total", count(m.total));
    out.member("reserved", count(m.reserved));
    out.member("high_water", count(m.high_water));
    out.member("pinned_used", count(m.pinned_used));
    out.member("pinned_reserved", count(m.pinned_reserved));
    out.member("shared", count(m.shared));
    out.end_object();
}

void write_ops(json_writer& out, const std::vector<op_latency>& rows)
{
    out.key("ops_by_name");
    out.begin_array();
    for (const op_latency& row : rows) {
        out.begin_object();
        out.member("op", row.op);
        out.member("count", count(row.count));
        out.member("sum", in_seconds(row.sum));
        out.member("p50", in_seconds(row.p50));
        out.member("p90", in_seconds(row.p90));
        out.member("p99", in_seconds(row.p99));
        out.member("max", in_seconds(row.max));
        out.end_object();
    }
    out.end_array();
}

void write_stats(json_writer& out, const device_stats& s)
{
    out.begin_object();
    out.member("state", to_string(s.state));
    out.member("at_ms", in_seconds(s.at.time_since_epoch()) * 1e3);
    out.member("backend", s.backend);
    out.member("hardware", s.hardware.name);
    out.member("process", s.hardware.process);
    out.member("queued", count(s.queued));
    out.member("in_flight", count(s.in_flight));
    out.member("completed", count(s.completed));
    out.member("failed", count(s.failed));
    out.member("cancelled", count(s.cancelled));
    out.member("expired", count(s.expired));
    out.member("ops", count(s.ops));
    out.member("bytes_to_device", count(s.bytes_to_device));
    out.member("bytes_to_host", count(s.bytes_to_host));
    out.member("live_buffers", count(s.live_buffers));
    out.member("restarts", count(s.restarts));
    out.member("reruns", count(s.reruns));
    out.member("convicted", count(s.convicted));
    out.member("plan_instances", count(s.plan_instances));
    out.member("standby_plans", count(s.standby_plans));
    out.member("quarantined_plans", count(s.quarantined_plans));
    out.member("suspect_buffers", count(s.suspect_buffers));
    write_memory_object(out, s.memory);
    write_ops(out, s.latencies);
    out.end_object();
}

void write_device_object(json_writer& out, const device_sample& d)
{
    out.begin_object();
    out.member("name", d.name);
    out.member("state", to_string(d.status.state));
    out.member("generation", d.status.generation);
    out.member("reason", d.status.reason ? d.status.reason.message() : std::string());
    out.key("stats");
    if (d.stats)
        write_stats(out, *d.stats);
    else
        out.null();
    out.end_object();
}

void write_histogram(json_writer& out, const histogram_snapshot& h)
{
    out.begin_object();
    out.member("count", count(h.count));
    out.member("sum", h.sum);
    out.member("p50", h.quantile(0.5));
    out.member("p99", h.quantile(0.99));
    out.key("buckets");
    out.begin_array();
    for (const auto& b : h.buckets) {
        out.begin_array();
        out.number(b.upper);
        out.number(count(b.count));
        out.end_array();
    }
    out.end_array();
    out.end_object();
}

void write_summary(json_writer& out, const summary_snapshot& s)
{
    out.begin_object();
    out.member("count", count(s.count));
    out.member("sum", s.sum);
    out.key("quantiles");
    out.begin_array();
    for (const auto& q : s.quantiles) {
        out.begin_array();
        out.number(q.q);
        out.number(q.value);
        out.end_array();
    }
    out.end_array();
    out.end_object();
}

void write_sample(json_writer& out, const sample& s)
{
    out.begin_object();
    out.key("labels");
    out.begin_object();
    for (const label& l : s.labels)
        out.member(l.name, l.value);
    out.end_object();
    out.key("value");
    if (const auto* number = std::get_if<double>(&s.value))
        out.number(*number);
    else if (const auto* h = std::get_if<histogram_snapshot>(&s.value))
        write_histogram(out, *h);
    else
        write_summary(out, std::get<summary_snapshot>(s.value));
    out.end_object();
}

} // namespace

std::string to_json(const snapshot& all)
{
    std::string text;
    json_writer out(text);
    out.begin_object();
    out.member("version", COACCEL_VERSION_STRING);
    out.member("process", process_id());
    const auto since_epoch = std::chrono::duration_cast<std::chrono::milliseconds>(all.at.time_since_epoch());
    out.member("at_ms", static_cast<double>(since_epoch.count()));
    out.key("devices");
    out.begin_array();
    for (const device_sample& d : all.devices)
        write_device_object(out, d);
    out.end_array();
    out.key("metrics");
    out.begin_object();
    for (const metric_family& f : all.families) {
        out.key(f.name);
        out.begin_object();
        out.member("type", to_string(f.type));
        out.member("help", f.help);
        out.key("samples");
        out.begin_array();
        for (const sample& s : f.samples)
            write_sample(out, s);
        out.end_array();
        out.end_object();
    }
    out.end_object();
    out.end_object();
    return text;
}

} // namespace coaccel::telemetry
