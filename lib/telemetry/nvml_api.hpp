#ifndef COACCEL_TELEMETRY_NVML_API_HPP
#define COACCEL_TELEMETRY_NVML_API_HPP

#include <coaccel/core/result.hpp>

#include <string>
#include <type_traits>

// The part of NVML that we use, as its documentation gives it ("NVML API Reference Guide"). NVIDIA keeps these types
// and functions binary compatible. Not from nvml.h, because toolkits can be installed without it.
namespace coaccel::detail {

/// nvmlReturn_t
enum class nvml_result : int { success = 0, uninitialized = 1, not_supported = 3, gpu_is_lost = 15, unknown = 999 };

/// nvmlDevice_t
using nvml_device = struct nvmlDevice_st*;

/// nvmlUtilization_t, in percent
struct nvml_utilization {
    unsigned gpu = 0;
    unsigned memory = 0;
};

/// nvmlMemory_t, in bytes
struct nvml_memory {
    unsigned long long total = 0;
    unsigned long long free = 0;
    unsigned long long used = 0;
};

/// nvmlTemperatureSensors_t
enum class nvml_sensor : int { gpu = 0 };

/// nvmlClockType_t
enum class nvml_clock : int { graphics = 0, sm = 1, memory = 2, video = 3 };

/// nvmlMemoryErrorType_t
enum class nvml_memory_error : int { corrected = 0, uncorrected = 1 };

/// nvmlEccCounterType_t
enum class nvml_ecc_counter : int { since_driver_load = 0, lifetime = 1 };

/// The functions, by the names of their symbols.
#define COACCEL_NVML_FUNCTIONS(X)                                                                                      \
    X(nvmlInit_v2, nvml_result())                                                                                      \
    X(nvmlShutdown, nvml_result())                                                                                     \
    X(nvmlErrorString, const char*(nvml_result))                                                                       \
    X(nvmlDeviceGetCount_v2, nvml_result(unsigned*))                                                                   \
    X(nvmlDeviceGetHandleByIndex_v2, nvml_result(unsigned, nvml_device*))                                              \
    X(nvmlDeviceGetName, nvml_result(nvml_device, char*, unsigned))                                                    \
    X(nvmlDeviceGetUUID, nvml_result(nvml_device, char*, unsigned))                                                    \
    X(nvmlDeviceGetPowerUsage, nvml_result(nvml_device, unsigned*))                                                    \
    X(nvmlDeviceGetTemperature, nvml_result(nvml_device, nvml_sensor, unsigned*))                                      \
    X(nvmlDeviceGetClockInfo, nvml_result(nvml_device, nvml_clock, unsigned*))                                         \
    X(nvmlDeviceGetMemoryInfo, nvml_result(nvml_device, nvml_memory*))                                                 \
    X(nvmlDeviceGetUtilizationRates, nvml_result(nvml_device, nvml_utilization*))                                      \
    X(nvmlDeviceGetTotalEccErrors, nvml_result(nvml_device, nvml_memory_error, nvml_ecc_counter, unsigned long long*)) \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, nvml_result(nvml_device, unsigned long long*))

/// The functions of NVML that we call. Tests fill it with their own.
struct nvml_api {
    /// Opens libnvidia-ml.so.1, or the file that the environment variable COACCEL_LIBNVML names, which may take long.
    /// It is never closed.
    ///
    /// Errors: errc::library_missing; errc::library_too_old, with the name of the missing function.
    static result<nvml_api> load();

#define COACCEL_NVML_MEMBER(name, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
    COACCEL_NVML_FUNCTIONS(COACCEL_NVML_MEMBER)
#undef COACCEL_NVML_MEMBER
};

} // namespace coaccel::detail

#endif
