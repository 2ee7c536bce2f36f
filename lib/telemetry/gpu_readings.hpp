#ifndef COACCEL_TELEMETRY_GPU_READINGS_HPP
#define COACCEL_TELEMETRY_GPU_READINGS_HPP

#include "telemetry/nvml_api.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::telemetry {

class metric_writer;

} // namespace coaccel::telemetry

namespace coaccel::detail {

/// Why the clocks of a GPU are lower than they could be.
struct throttle_reason {
    std::uint64_t bit;
    std::string_view name;
};

inline constexpr std::array<throttle_reason, 9> throttle_reasons{{
    {0x001, "gpu_idle"},
    {0x002, "applications_clocks_setting"},
    {0x004, "sw_power_cap"},
    {0x008, "hw_slowdown"},
    {0x010, "sync_boost"},
    {0x020, "sw_thermal_slowdown"},
    {0x040, "hw_thermal_slowdown"},
    {0x080, "hw_power_brake_slowdown"},
    {0x100, "display_clock_setting"},
}};

/// What NVML says about one GPU. A value that the GPU does not have is absent.
struct gpu_reading {
    unsigned index = 0; ///< In NVML's numbering.
    std::string name;
    std::string uuid;
    std::optional<double> power_watts;
    std::optional<double> temperature_celsius;
    std::optional<double> sm_hertz;
    std::optional<double> memory_hertz;
    std::optional<nvml_memory> memory;
    std::optional<nvml_utilization> utilization;
    std::optional<std::uint64_t> ecc_corrected;
    std::optional<std::uint64_t> ecc_uncorrected;
    std::optional<std::uint64_t> throttled; ///< The bits of throttle_reasons.
};

/// Asks NVML, which may take milliseconds for each value. A GPU that does not answer is missing. Preconditions: NVML is
/// initialised.
std::vector<gpu_reading> read_gpus(const nvml_api& api);

void write_gpus(telemetry::metric_writer& out, std::span<const gpu_reading> gpus);

} // namespace coaccel::detail

#endif
