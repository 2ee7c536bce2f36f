#include "gpu.hpp"
#include "telemetry/gpu_readings.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace test_gpu_traces {

// Times that a GPU measures, and what NVML tells about it.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using namespace test;

/// A product that takes a while.
plan_description long_plan()
{
    constexpr std::uint64_t n = 2048;
    plan_builder b("long");
    const auto x = b.input<float>(1);
    const auto a = b.scratch<float>(n * n);
    const auto c = b.scratch<float>(n * n);
    const auto y = b.output<float>(1);
    b.add(memory::fill<float>{a, 1.0f});
    b.add(blas::gemm<float>{.a = a, .b = a, .c = c, .m = n, .n = n, .k = n});
    b.add(memory::copy<float>{x, y});
    return b.finish().value();
}

TEST_SUITE_BEGIN("traces");

TEST_CASE("the GPU measures the chosen share of the runs, here and in a worker")
{
    for (const auto where : {isolation::in_process, isolation::worker}) {
        const auto buffer = trace_buffer::create(256);
        auto options = gpu_options();
        options.isolation = where;
        options.trace = buffer.get();
        options.cuda.timed_runs = 4;
        options.cuda.nvtx = true;
        gpu_fixture f(options);
        const auto p = await(f.io, f.gpu.async_load(long_plan(), plan_options{.instances = 1, .initial = 1}));
        REQUIRE(p);
        const std::vector<float> x{3};
        std::vector<float> y(1);
        for (int i = 0; i < 8; ++i)
            REQUIRE(await(f.io, p.value().async_run(from(x), to(y))));
        CHECK(y == x);
        std::vector<trace_event> measured, runs;
        for (const trace_event& e : buffer->snapshot().events) {
            if (e.kind == trace_kind::measured)
                measured.push_back(e);
            if (e.kind == trace_kind::run)
                runs.push_back(e);
        }
        CHECK(runs.size() == 8);
        REQUIRE(measured.size() == 2);
        for (const trace_event& e : measured) {
            // Seventeen billion operations take longer than this on every GPU.
            CHECK(e.duration > 50us);
            CHECK(e.duration < 1s);
        }
    }
}

TEST_CASE("NVML tells about the GPUs")
{
    const auto api = detail::nvml_api::load();
    REQUIRE_MESSAGE(api, api.error().message());
    REQUIRE(api.value().nvmlInit_v2() == detail::nvml_result::success);
    const auto all = detail::read_gpus(api.value());
    CHECK(api.value().nvmlShutdown() == detail::nvml_result::success);
    REQUIRE_FALSE(all.empty());
    for (const auto& g : all) {
        CHECK_FALSE(g.name.empty());
        CHECK(g.uuid.starts_with("GPU-"));
        REQUIRE(g.memory);
        CHECK(g.memory->total > g.memory->used);
        CHECK(g.memory->used + g.memory->free <= g.memory->total);
        if (g.power_watts)
            CHECK((*g.power_watts > 1 && *g.power_watts < 2000));
        if (g.temperature_celsius)
            CHECK((*g.temperature_celsius > 0 && *g.temperature_celsius < 120));
        if (g.sm_hertz)
            CHECK((*g.sm_hertz >= 1e8 && *g.sm_hertz < 1e10));
        if (g.utilization)
            CHECK((g.utilization->gpu <= 100 && g.utilization->memory <= 100));
        if (g.throttled)
            CHECK(*g.throttled < 0x1000);
        MESSAGE(g.name << ": " << g.power_watts.value_or(0) << " W, " << g.temperature_celsius.value_or(0) << " C, "
                       << g.sm_hertz.value_or(0) / 1e6 << " MHz, " << g.memory->used << " of " << g.memory->total
                       << " bytes, ECC " << g.ecc_corrected.value_or(0) << "/" << g.ecc_uncorrected.value_or(0)
                       << ", throttle bits " << g.throttled.value_or(0));
    }
}

TEST_SUITE_END();

} // namespace
} // namespace test_gpu_traces
