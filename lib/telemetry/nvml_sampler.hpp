#ifndef COACCEL_TELEMETRY_NVML_SAMPLER_HPP
#define COACCEL_TELEMETRY_NVML_SAMPLER_HPP

#include "telemetry/gpu_readings.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace coaccel::detail {

/// Asks NVML at regular intervals, on its own thread, because a call may take milliseconds, or hang if a GPU is in
/// trouble.
class nvml_sampler {
public:
    using clock = std::chrono::steady_clock;
    /// Called on the thread of the sampler. Tests give their own table.
    using loader = std::function<result<nvml_api>()>;

    nvml_sampler(std::chrono::nanoseconds interval, loader load);
    nvml_sampler(const nvml_sampler&) = delete;
    nvml_sampler& operator=(const nvml_sampler&) = delete;
    /// Waits for a call of NVML that is under way, but no longer than `patience`.
    ~nvml_sampler();

    /// The latest readings. Empty: there are none yet, or they are too old, because NVML hangs.
    std::vector<gpu_reading> latest() const;

    /// Why there are no readings.
    error_code error() const;

    static constexpr auto patience = std::chrono::seconds(1);

private:
    struct state;

    static void run(const std::shared_ptr<state>& s) noexcept;

    /// The thread may outlive the sampler.
    const std::shared_ptr<state> state_;
};

} // namespace coaccel::detail

#endif
