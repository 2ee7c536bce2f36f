#include "support/gate.hpp"
#include "support/told.hpp"
#include "telemetry/nvml_sampler.hpp"

#include <coaccel/telemetry/nvml_source.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace test_telemetry_nvml {

// NVML, played by functions of the test.
namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace std::chrono_literals;

/// What the fake library answers. The functions of a table cannot capture anything.
struct fake_nvml {
    std::atomic<nvml_result> initialised{nvml_result::success};
    std::atomic<nvml_result> counted{nvml_result::success};
    /// The result of everything that is asked about GPU 0.
    std::atomic<nvml_result> first{nvml_result::success};
    std::atomic<nvml_result> handle_of_second{nvml_result::success};
    std::atomic<bool> hangs{false};
    test::gate gate;
    test::told read;
    test::told shut_down;

    nvml_result result_for(nvml_device gpu) const { return gpu == device(0) ? first.load() : nvml_result::success; }

    static nvml_device device(std::uintptr_t i) { return reinterpret_cast<nvml_device>(16 * (i + 1)); }
};

std::unique_ptr<fake_nvml> nvml;

template <class T>
nvml_result give(nvml_device gpu, T* out, T value)
{
    *out = value;
    return nvml->result_for(gpu);
}

nvml_result copy_text(nvml_device gpu, char* out, unsigned size, const char* text)
{
    REQUIRE(std::strlen(text) < size);
    std::strcpy(out, text);
    return nvml->result_for(gpu);
}

nvml_api table()
{
    nvml_api t;
    t.nvmlInit_v2 = [] { return nvml->initialised.load(); };
    t.nvmlShutdown = [] {
        nvml->shut_down.add();
        return nvml_result::success;
    };
    t.nvmlErrorString = [](nvml_result) { return "the reason"; };
    t.nvmlDeviceGetCount_v2 = [](unsigned* n) {
        nvml->read.add();
        if (nvml->hangs)
            nvml->gate.pass();
        *n = 2;
        return nvml->counted.load();
    };
    t.nvmlDeviceGetHandleByIndex_v2 = [](unsigned i, nvml_device* gpu) {
        *gpu = fake_nvml::device(i);
        return i == 1 ? nvml->handle_of_second.load() : nvml_result::success;
    };
    t.nvmlDeviceGetName = [](nvml_device gpu, char* out, unsigned n) { return copy_text(gpu, out, n, "GPU X"); };
    t.nvmlDeviceGetUUID = [](nvml_device gpu, char* out, unsigned n) { return copy_text(gpu, out, n, "GPU-1-2"); };
    t.nvmlDeviceGetPowerUsage = [](nvml_device gpu, unsigned* out) { return give(gpu, out, 123456u); };
    t.nvmlDeviceGetTemperature = [](nvml_device gpu, nvml_sensor, unsigned* out) { return give(gpu, out, 41u); };
    t.nvmlDeviceGetClockInfo = [](nvml_device gpu, nvml_clock which, unsigned* out) {
        return give(gpu, out, which == nvml_clock::sm ? 1980u : 3201u);
    };
    t.nvmlDeviceGetMemoryInfo = [](nvml_device gpu, nvml_memory* out) { return give(gpu, out, nvml_memory{10, 7, 3}); };
    t.nvmlDeviceGetUtilizationRates = [](nvml_device gpu, nvml_utilization* out) {
        return give(gpu, out, nvml_utilization{50, 25});
    };
    t.nvmlDeviceGetTotalEccErrors = [](nvml_device gpu, nvml_memory_error kind, nvml_ecc_counter,
                                       unsigned long long* out) {
        return give(gpu, out, kind == nvml_memory_error::corrected ? 5ull : 1ull);
    };
    t.nvmlDeviceGetCurrentClocksThrottleReasons = [](nvml_device gpu, unsigned long long* out) {
        return give(gpu, out, 0x44ull);
    };
    return t;
}

struct fixture {
    fixture() { nvml = std::make_unique<fake_nvml>(); }

    /// The second call of the first function comes after the first readings were stored.
    void wait_for_readings(int rounds = 2) { nvml->read.wait_for(rounds); }
};

nvml_sampler::loader loads_table()
{
    return []() -> result<nvml_api> { return table(); };
}

TEST_SUITE_BEGIN("nvml");

TEST_CASE_FIXTURE(fixture, "all values of all GPUs are read, in base units")
{
    const auto all = read_gpus(table());
    REQUIRE(all.size() == 2);
    CHECK(all[1].index == 1);
    const gpu_reading& g = all[0];
    CHECK(g.index == 0);
    CHECK(g.name == "GPU X");
    CHECK(g.uuid == "GPU-1-2");
    CHECK(g.power_watts.value() == doctest::Approx(123.456));
    CHECK(g.temperature_celsius.value() == 41);
    CHECK(g.sm_hertz.value() == 1980e6);
    CHECK(g.memory_hertz.value() == 3201e6);
    CHECK(g.memory.value().total == 10);
    CHECK(g.memory.value().used == 3);
    CHECK(g.utilization.value().gpu == 50);
    CHECK(g.utilization.value().memory == 25);
    CHECK(g.ecc_corrected.value() == 5);
    CHECK(g.ecc_uncorrected.value() == 1);
    CHECK(g.throttled.value() == 0x44);
}

TEST_CASE_FIXTURE(fixture, "values that a GPU does not have are absent, and a GPU that is lost is missing")
{
    nvml->first = nvml_result::not_supported;
    nvml->handle_of_second = nvml_result::gpu_is_lost;
    const auto all = read_gpus(table());
    REQUIRE(all.size() == 1);
    const gpu_reading& g = all[0];
    CHECK(g.index == 0);
    CHECK(g.name.empty());
    CHECK_FALSE(g.power_watts);
    CHECK_FALSE(g.temperature_celsius);
    CHECK_FALSE(g.sm_hertz);
    CHECK_FALSE(g.memory);
    CHECK_FALSE(g.utilization);
    CHECK_FALSE(g.ecc_corrected);
    CHECK_FALSE(g.throttled);
    nvml->counted = nvml_result::unknown;
    CHECK(read_gpus(table()).empty());
}

TEST_CASE_FIXTURE(fixture, "the sampler reads again and again, and ends NVML")
{
    {
        const nvml_sampler s(1ns, loads_table());
        wait_for_readings(2);
        CHECK(s.latest().size() == 2);
        nvml->handle_of_second = nvml_result::gpu_is_lost;
        wait_for_readings(nvml->read.count() + 2);
        CHECK(s.latest().size() == 1);
        CHECK_FALSE(s.error());
    }
    CHECK(nvml->shut_down.count() == 1);
}

TEST_CASE_FIXTURE(fixture, "without NVML there are no readings but an error")
{
    const auto wait_for_error = [](const nvml_sampler& s) {
        while (!s.error())
            std::this_thread::yield();
    };
    const nvml_sampler missing(1s, []() -> result<nvml_api> { return errc::library_missing; });
    wait_for_error(missing);
    CHECK(missing.error() == errc::library_missing);
    CHECK(missing.latest().empty());

    nvml->initialised = nvml_result::unknown;
    const nvml_sampler broken(1s, loads_table());
    wait_for_error(broken);
    CHECK(broken.error() == errc::backend_unavailable);
    CHECK(broken.error().message().find("nvmlInit_v2: the reason") != std::string::npos);
    CHECK(nvml->shut_down.count() == 0);
}

TEST_CASE_FIXTURE(fixture, "if NVML hangs, its values disappear, and no collection waits for it")
{
    auto s = std::make_unique<nvml_sampler>(10ms, loads_table());
    wait_for_readings();
    CHECK_FALSE(s->latest().empty());
    nvml->hangs = true;
    while (!s->latest().empty())
        std::this_thread::yield();
    const auto before = std::chrono::steady_clock::now();
    s.reset();
    const auto took = std::chrono::steady_clock::now() - before;
    CHECK(took >= nvml_sampler::patience);
    nvml->gate.open();
    nvml->shut_down.wait_for(1);
}

TEST_CASE("a library that is missing, or is another one, is reported with its name")
{
    const auto load_from = [](const char* path) {
        REQUIRE(::setenv("COACCEL_LIBNVML", path, 1) == 0);
        auto got = nvml_api::load();
        REQUIRE(::unsetenv("COACCEL_LIBNVML") == 0);
        return got;
    };
    const auto missing = load_from("/nowhere/libnvidia-ml.so.1");
    REQUIRE_FALSE(missing);
    CHECK(missing.error() == errc::library_missing);
    CHECK(missing.error().message().find("/nowhere/libnvidia-ml.so.1") != std::string::npos);
    const auto other = load_from("libm.so.6");
    REQUIRE_FALSE(other);
    CHECK(other.error() == errc::library_too_old);
    CHECK(other.error().message().find("libm.so.6 has no nvmlInit_v2") != std::string::npos);
}

TEST_SUITE_END();

} // namespace
} // namespace test_telemetry_nvml
