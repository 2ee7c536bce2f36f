#ifndef COACCEL_TELEMETRY_NVML_SOURCE_HPP
#define COACCEL_TELEMETRY_NVML_SOURCE_HPP

#include <coaccel/core/error.hpp>

#include <chrono>
#include <memory>

namespace coaccel::detail {

class nvml_sampler;

} // namespace coaccel::detail

namespace coaccel::telemetry {

class metric_writer;

/// Options of an nvml_source.
struct nvml_options {
    /// The time between two readings; from 10 ms to an hour.
    std::chrono::nanoseconds interval = std::chrono::seconds(1);
};

/// The state of all NVIDIA GPUs of the machine, as a source for registry::add_source: power, temperature, clock rates,
/// memory, utilisation, memory errors, and why clock rates are reduced. The label `gpu` is the number of the GPU in
/// NVML, which can differ from the ordinal of a device; the label `uuid` is the same everywhere.
///
/// NVML is opened at run time. Without it there are no metrics, and error() says why. The environment variable
/// COACCEL_LIBNVML names a file to open instead of libnvidia-ml.so.1.
///
/// Copies share one thread, which reads the values at regular intervals, because calls of NVML may take milliseconds.
/// A collection gets the latest values and does not wait. If NVML hangs, the metrics disappear after three intervals.
///
/// Thread safety: all functions may be called from any thread.
class COACCEL_DECL nvml_source {
public:
    /// Starts the thread, which opens NVML.
    ///
    /// Exceptions: std::bad_alloc.
    explicit nvml_source(const nvml_options& options = {});
    nvml_source(const nvml_source& other);            ///< Shares the thread.
    nvml_source& operator=(const nvml_source& other); ///< Shares the thread of the other source.
    ~nvml_source(); ///< The last copy ends the thread. Waits for a call of NVML that is under way, at most a second.

    /// Writes the latest values.
    ///
    /// Exceptions: std::bad_alloc.
    void operator()(metric_writer& out) const;

    /// Why there are no metrics: errc::library_missing, errc::library_too_old, or errc::backend_unavailable if NVML
    /// does not work. No error before NVML was opened.
    error_code error() const;

private:
    std::shared_ptr<detail::nvml_sampler> sampler_;
};

} // namespace coaccel::telemetry

#endif
