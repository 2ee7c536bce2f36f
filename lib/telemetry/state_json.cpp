#include "telemetry/json_writer.hpp"
#include "telemetry/units.hpp"

#include <coaccel/telemetry/exposition.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace coaccel::telemetry {
namespace {

using detail::as_number;
using detail::as_seconds;
using detail::json_writer;

/// Differs between processes, so that a reader can tell a restart from counters that go back.
const std::string& process_id()
{
    static const std::string id =
        std::to_string(::getpid()) + "-" + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    return id;
}

void write_counts(json_writer& out, std::initializer_list<std::pair<std::string_view, std::uint64_t>> members)
{
    for (const auto& [name, count] : members)
        out.member(name, as_number(count));
}

void write_pair(json_writer& out, double first, double second)
{
    out.begin_array();
    out.number(first);
    out.number(second);
    out.end_array();
}

void write_memory_object(json_writer& out, const memory_info& m)
{
    out.key("memory");
    out.begin_object();
    write_counts(out, {{"used", m.used},
                       {"free", m.free},
                       {"total", m.total},
                       {"reserved", m.reserved},
                       {"high_water", m.high_water},
                       {"pinned_used", m.pinned_used},
                       {"pinned_reserved", m.pinned_reserved},
                       {"shared", m.shared}});
    out.end_object();
}

void write_ops(json_writer& out, const std::vector<op_latency>& rows)
{
    out.key("ops_by_name");
    out.begin_array();
    for (const op_latency& row : rows) {
        out.begin_object();
        out.member("op", row.op);
        out.member("count", as_number(row.count));
        out.member("sum", as_seconds(row.sum));
        out.member("p50", as_seconds(row.p50));
        out.member("p90", as_seconds(row.p90));
        out.member("p99", as_seconds(row.p99));
        out.member("max", as_seconds(row.max));
        out.key("buckets");
        out.begin_array();
        for (const latency_bucket& b : row.buckets)
            write_pair(out, as_seconds(b.upper), as_number(b.count));
        out.end_array();
        out.end_object();
    }
    out.end_array();
}

void write_plans(json_writer& out, const std::vector<plan_stats>& rows)
{
    out.key("plans");
    out.begin_array();
    for (const plan_stats& p : rows) {
        out.begin_object();
        out.member("op", p.op);
        write_counts(out, {{"completed", p.completed},
                           {"failed", p.failed},
                           {"cancelled", p.cancelled},
                           {"expired", p.expired},
                           {"reruns", p.reruns},
                           {"bytes_to_device", p.bytes_to_device},
                           {"bytes_to_host", p.bytes_to_host},
                           {"instances", p.instances},
                           {"running", p.running},
                           {"waiting", p.waiting},
                           {"quarantined", p.quarantined}});
        out.end_object();
    }
    out.end_array();
}

void write_stats(json_writer& out, const device_stats& s)
{
    out.begin_object();
    out.member("state", to_string(s.state));
    out.member("at_ms", as_seconds(s.at.time_since_epoch()) * 1e3);
    out.member("backend", s.backend);
    out.member("hardware", s.hardware.name);
    out.member("process", s.hardware.process);
    write_counts(out, {{"queued", s.queued},
                       {"in_flight", s.in_flight},
                       {"completed", s.completed},
                       {"failed", s.failed},
                       {"cancelled", s.cancelled},
                       {"expired", s.expired},
                       {"ops", s.ops},
                       {"bytes_to_device", s.bytes_to_device},
                       {"bytes_to_host", s.bytes_to_host},
                       {"live_buffers", s.live_buffers},
                       {"restarts", s.restarts},
                       {"reruns", s.reruns},
                       {"convicted", s.convicted},
                       {"plan_instances", s.plan_instances},
                       {"standby_plans", s.standby_plans},
                       {"quarantined_plans", s.quarantined_plans},
                       {"suspect_buffers", s.suspect_buffers}});
    write_memory_object(out, s.memory);
    write_ops(out, s.latencies);
    write_plans(out, s.plans);
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
    out.member("count", as_number(h.count));
    out.member("sum", h.sum);
    out.member("p50", h.quantile(0.5));
    out.member("p99", h.quantile(0.99));
    out.key("buckets");
    out.begin_array();
    for (const auto& b : h.buckets)
        write_pair(out, b.upper, as_number(b.count));
    out.end_array();
    out.end_object();
}

void write_summary(json_writer& out, const summary_snapshot& s)
{
    out.begin_object();
    out.member("count", as_number(s.count));
    out.member("sum", s.sum);
    out.key("quantiles");
    out.begin_array();
    for (const auto& q : s.quantiles)
        write_pair(out, q.q, q.value);
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
