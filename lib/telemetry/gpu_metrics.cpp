#include "telemetry/gpu_readings.hpp"

#include <coaccel/telemetry/metric_writer.hpp>

#include <utility>

namespace coaccel::detail {

void write_gpus(telemetry::metric_writer& out, std::span<const gpu_reading> gpus)
{
    for (const gpu_reading& g : gpus) {
        const telemetry::labels gpu{{"gpu", std::to_string(g.index)}, {"uuid", g.uuid}};
        const auto with = [&](const char* name, std::string_view value) {
            auto all = gpu;
            all.emplace_back(name, std::string(value));
            return all;
        };
        out.gauge("coaccel_gpu_info", "A GPU, with its name as a label; always 1", with("name", g.name), 1);
        if (g.power_watts)
            out.gauge("coaccel_gpu_power_watts", "Power that the GPU draws", gpu, *g.power_watts);
        if (g.temperature_celsius)
            out.gauge("coaccel_gpu_temperature_celsius", "Temperature of the GPU", gpu, *g.temperature_celsius);
        const std::pair<std::string_view, std::optional<double>> clocks[] = {{"sm", g.sm_hertz},
                                                                             {"memory", g.memory_hertz}};
        for (const auto& [name, hertz] : clocks)
            if (hertz)
                out.gauge("coaccel_gpu_clock_hertz", "Current clock rate", with("clock", name), *hertz);
        if (g.memory) {
            constexpr std::string_view help = "Memory of the GPU, for all processes";
            out.gauge("coaccel_gpu_memory_bytes", help, with("kind", "total"), static_cast<double>(g.memory->total));
            out.gauge("coaccel_gpu_memory_bytes", help, with("kind", "used"), static_cast<double>(g.memory->used));
        }
        if (g.utilization) {
            constexpr std::string_view help = "Fraction of the time in which a kernel ran, or memory was accessed";
            out.gauge("coaccel_gpu_utilization_ratio", help, with("unit", "gpu"), g.utilization->gpu / 100.0);
            out.gauge("coaccel_gpu_utilization_ratio", help, with("unit", "memory"), g.utilization->memory / 100.0);
        }
        const std::pair<std::string_view, std::optional<std::uint64_t>> errors[] = {{"corrected", g.ecc_corrected},
                                                                                    {"uncorrected", g.ecc_uncorrected}};
        for (const auto& [kind, count] : errors)
            if (count)
                out.counter("coaccel_gpu_ecc_errors_total", "Memory errors since the driver was loaded",
                            with("kind", kind), static_cast<double>(*count));
        if (g.throttled)
            for (const throttle_reason& r : throttle_reasons)
                out.gauge("coaccel_gpu_throttled", "1 if the clocks are lower for this reason", with("reason", r.name),
                          (*g.throttled & r.bit) != 0 ? 1 : 0);
    }
}

} // namespace coaccel::detail
