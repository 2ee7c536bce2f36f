#ifndef COACCEL_TELEMETRY_OBJECT_SAMPLES_HPP
#define COACCEL_TELEMETRY_OBJECT_SAMPLES_HPP

#include <coaccel/actor/supervisor_stats.hpp>
#include <coaccel/core/trace.hpp>
#include <coaccel/telemetry/detail/collect_ops.hpp>
#include <coaccel/telemetry/metric_writer.hpp>

#include <string_view>

namespace coaccel::detail {

void write_supervisor(telemetry::metric_writer& out, std::string_view name, const supervisor_stats& s);
void write_trace_buffer(telemetry::metric_writer& out, std::string_view name, const trace_buffer& events);

/// What all objects of the process share: compiled kernels, and the contents of plans.
void write_caches(telemetry::metric_writer& out);

} // namespace coaccel::detail

#endif
