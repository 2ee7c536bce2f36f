#include "telemetry/gpu_readings.hpp"

#include <utility>

namespace coaccel::detail {
namespace {

/// The value if the function has succeeded.
template <class Value>
std::optional<Value> ask(nvml_result (*function)(nvml_device, Value*), nvml_device gpu)
{
    Value value{};
    return function(gpu, &value) == nvml_result::success ? std::optional(value) : std::nullopt;
}

std::string text_of(nvml_result (*function)(nvml_device, char*, unsigned), nvml_device gpu)
{
    std::array<char, 97> text{};
    if (function(gpu, text.data(), static_cast<unsigned>(text.size() - 1)) != nvml_result::success)
        return {};
    return text.data();
}

std::optional<double> scaled(const std::optional<unsigned>& value, double factor)
{
    return value ? std::optional(factor * *value) : std::nullopt;
}

} // namespace

std::vector<gpu_reading> read_gpus(const nvml_api& api)
{
    unsigned count = 0;
    std::vector<gpu_reading> all;
    if (api.nvmlDeviceGetCount_v2(&count) != nvml_result::success)
        return all;
    for (unsigned i = 0; i < count; ++i) {
        nvml_device gpu = nullptr;
        if (api.nvmlDeviceGetHandleByIndex_v2(i, &gpu) != nvml_result::success)
            continue;
        const auto ecc = [&](nvml_memory_error kind) -> std::optional<std::uint64_t> {
            unsigned long long errors = 0;
            if (api.nvmlDeviceGetTotalEccErrors(gpu, kind, nvml_ecc_counter::since_driver_load, &errors) !=
                nvml_result::success)
                return std::nullopt;
            return errors;
        };
        const auto clock = [&](nvml_clock which) {
            unsigned megahertz = 0;
            const bool known = api.nvmlDeviceGetClockInfo(gpu, which, &megahertz) == nvml_result::success;
            return scaled(known ? std::optional(megahertz) : std::nullopt, 1e6);
        };
        unsigned celsius = 0;
        const bool warm = api.nvmlDeviceGetTemperature(gpu, nvml_sensor::gpu, &celsius) == nvml_result::success;
        gpu_reading r;
        r.index = i;
        r.name = text_of(api.nvmlDeviceGetName, gpu);
        r.uuid = text_of(api.nvmlDeviceGetUUID, gpu);
        r.power_watts = scaled(ask(api.nvmlDeviceGetPowerUsage, gpu), 1e-3);
        r.temperature_celsius = scaled(warm ? std::optional(celsius) : std::nullopt, 1);
        r.sm_hertz = clock(nvml_clock::sm);
        r.memory_hertz = clock(nvml_clock::memory);
        r.memory = ask(api.nvmlDeviceGetMemoryInfo, gpu);
        r.utilization = ask(api.nvmlDeviceGetUtilizationRates, gpu);
        r.ecc_corrected = ecc(nvml_memory_error::corrected);
        r.ecc_uncorrected = ecc(nvml_memory_error::uncorrected);
        r.throttled = ask(api.nvmlDeviceGetCurrentClocksThrottleReasons, gpu);
        all.push_back(std::move(r));
    }
    return all;
}

} // namespace coaccel::detail
