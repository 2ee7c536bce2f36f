#include "snapshots.hpp"
#include "support/devices.hpp"
#include "telemetry/gpu_readings.hpp"

#include <coaccel/telemetry/nvml_source.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace test_telemetry_gpu_metrics {

// What NVML tells, as samples of a registry.
namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using test::await;
using test::value_of;

detail::gpu_reading full_reading(unsigned index)
{
    detail::gpu_reading g;
    g.index = index;
    g.name = "GPU X";
    g.uuid = "GPU-" + std::to_string(index);
    g.power_watts = 123.5;
    g.temperature_celsius = 41;
    g.sm_hertz = 1980e6;
    g.memory_hertz = 3201e6;
    g.memory = detail::nvml_memory{10, 7, 3};
    g.utilization = detail::nvml_utilization{50, 25};
    g.ecc_corrected = 5;
    g.ecc_uncorrected = 1;
    g.throttled = 0x44;
    return g;
}

snapshot collect(asio::io_context& io, const registry& metrics)
{
    return await(io, metrics.async_collect()).value();
}

std::vector<std::string> gpu_families(const snapshot& s)
{
    std::vector<std::string> names;
    for (const auto& f : s.families)
        if (f.name.starts_with("coaccel_gpu_"))
            names.push_back(f.name);
    return names;
}

TEST_SUITE_BEGIN("gpu_metrics");

TEST_CASE("every value is a sample with the number and the uuid of its GPU, and none is dropped")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const std::vector<detail::gpu_reading> gpus{full_reading(0), full_reading(1)};
    const auto added = metrics.add_source([&gpus](metric_writer& out) { detail::write_gpus(out, gpus); });
    const auto all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 0);
    for (const char* const n : {"0", "1"}) {
        const auto with = [n](std::string name, std::string value) {
            labels all_labels{{"gpu", n}, {"uuid", std::string("GPU-") + n}};
            if (!name.empty())
                all_labels.emplace_back(std::move(name), std::move(value));
            return all_labels;
        };
        CHECK(value_of(all, "coaccel_gpu_info", with("name", "GPU X")) == 1);
        CHECK(value_of(all, "coaccel_gpu_power_watts", with("", "")) == 123.5);
        CHECK(value_of(all, "coaccel_gpu_temperature_celsius", with("", "")) == 41);
        CHECK(value_of(all, "coaccel_gpu_clock_hertz", with("clock", "sm")) == 1980e6);
        CHECK(value_of(all, "coaccel_gpu_clock_hertz", with("clock", "memory")) == 3201e6);
        CHECK(value_of(all, "coaccel_gpu_memory_bytes", with("kind", "total")) == 10);
        CHECK(value_of(all, "coaccel_gpu_memory_bytes", with("kind", "used")) == 3);
        CHECK(value_of(all, "coaccel_gpu_utilization_ratio", with("unit", "gpu")) == 0.5);
        CHECK(value_of(all, "coaccel_gpu_utilization_ratio", with("unit", "memory")) == 0.25);
        CHECK(value_of(all, "coaccel_gpu_ecc_errors_total", with("kind", "corrected")) == 5);
        CHECK(value_of(all, "coaccel_gpu_ecc_errors_total", with("kind", "uncorrected")) == 1);
        CHECK(value_of(all, "coaccel_gpu_throttled", with("reason", "sw_power_cap")) == 1);
        CHECK(value_of(all, "coaccel_gpu_throttled", with("reason", "hw_thermal_slowdown")) == 1);
        CHECK(value_of(all, "coaccel_gpu_throttled", with("reason", "gpu_idle")) == 0);
    }
}

TEST_CASE("values that a GPU does not have are no samples")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const std::vector<detail::gpu_reading> gpus(1);
    const auto added = metrics.add_source([&gpus](metric_writer& out) { detail::write_gpus(out, gpus); });
    CHECK(gpu_families(collect(io, metrics)) == std::vector<std::string>{"coaccel_gpu_info"});
}

TEST_CASE("without NVML there are no metrics")
{
    REQUIRE(::setenv("COACCEL_LIBNVML", "/nowhere/libnvidia-ml.so.1", 1) == 0);
    const nvml_source source;
    while (!source.error())
        std::this_thread::yield();
    REQUIRE(::unsetenv("COACCEL_LIBNVML") == 0);
    CHECK(source.error() == errc::library_missing);
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto added = metrics.add_source(source);
    CHECK(gpu_families(collect(io, metrics)).empty());
}

TEST_SUITE_END();

} // namespace
} // namespace test_telemetry_gpu_metrics
