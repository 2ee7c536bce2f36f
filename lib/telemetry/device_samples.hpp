#ifndef COACCEL_TELEMETRY_DEVICE_SAMPLES_HPP
#define COACCEL_TELEMETRY_DEVICE_SAMPLES_HPP

#include <coaccel/device/device_stats.hpp>
#include <coaccel/telemetry/metric_writer.hpp>

#include <string>

namespace coaccel::detail {

/// Writes the statistics of a device as metrics.
void write_device(telemetry::metric_writer& out, const std::string& name, const device_stats& s);

} // namespace coaccel::detail

#endif
