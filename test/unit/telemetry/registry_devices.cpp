#include "snapshots.hpp"
#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

namespace test_telemetry_registry_devices {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using namespace std::chrono_literals;
using test::await;
using test::collect;
using test::find_sample;
using test::make_device;
using test::value_of;

TEST_SUITE_BEGIN("registry devices");

TEST_CASE("the statistics of a device become samples")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto gpu = make_device(io);
    const auto kept = metrics.add(gpu, "cpu0").value();
    const std::vector<float> data(1000, 1.0f);
    auto x = await(io, gpu.async_upload(data)).value();
    CHECK(await(io, gpu.async_exec(memory::fill<float>{.dst = x, .value = 2.0f})));
    CHECK(await(io, gpu.async_download(x)));
    CHECK_FALSE(await(io, gpu.async_exec(memory::fill<float>{})));
    const auto all = collect(io, metrics);

    const auto stats = await(io, gpu.async_stats()).value();
    const labels cpu{{"device", "cpu0"}};
    const auto with = [](std::string name, std::string value) {
        return labels{{"device", "cpu0"}, {std::move(name), std::move(value)}};
    };
    CHECK(value_of(all, "coaccel_device_info",
                   {{"device", "cpu0"}, {"backend", "host"}, {"hardware", stats.hardware.name}}) == 1);
    CHECK(value_of(all, "coaccel_device_state", with("state", "ready")) == 1);
    CHECK(value_of(all, "coaccel_device_state", with("state", "failed")) == 0);
    CHECK(value_of(all, "coaccel_device_generation", cpu) == 1);
    CHECK(value_of(all, "coaccel_device_queued", cpu) == 0);
    CHECK(value_of(all, "coaccel_device_in_flight", cpu) == 0);
    CHECK(value_of(all, "coaccel_device_calls_total", with("outcome", "completed")) ==
          static_cast<double>(stats.completed));
    CHECK(value_of(all, "coaccel_device_calls_total", with("outcome", "failed")) == 1);
    CHECK(value_of(all, "coaccel_device_ops_total", cpu) == static_cast<double>(stats.ops));
    CHECK(value_of(all, "coaccel_device_transferred_bytes_total", with("direction", "to_device")) == 4000);
    CHECK(value_of(all, "coaccel_device_transferred_bytes_total", with("direction", "to_host")) == 4000);
    CHECK(value_of(all, "coaccel_device_memory_bytes", with("kind", "used")) == static_cast<double>(stats.memory.used));
    CHECK(value_of(all, "coaccel_device_live_buffers", cpu) == 1);
    CHECK(value_of(all, "coaccel_device_restarts_total", cpu) == 0);
    CHECK(value_of(all, "coaccel_device_reruns_total", cpu) == 0);
    CHECK(value_of(all, "coaccel_device_convicted_total", cpu) == 0);
    CHECK(value_of(all, "coaccel_device_quarantined_plans", cpu) == 0);
    CHECK(value_of(all, "coaccel_device_suspect_buffers", cpu) == 0);
    const auto* fill = find_sample(all, "coaccel_device_op_latency_seconds", with("op", "memory.fill<f32>"));
    REQUIRE(fill);
    const auto& times = std::get<summary_snapshot>(fill->value);
    CHECK(times.count == 2);
    CHECK(times.sum > 0);
    CHECK(times.quantiles.size() == 3);
    CHECK(value_of(all, "coaccel_device_op_latency_max_seconds", with("op", "memory.fill<f32>")) > 0);
    REQUIRE(all.devices.size() == 1);
    CHECK(all.devices[0].name == "cpu0");
    REQUIRE(all.devices[0].stats);
    CHECK(all.devices[0].stats->completed == stats.completed);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 0);
}

TEST_CASE("the runs of a plan become samples")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto gpu = make_device(io);
    const auto kept = metrics.add(gpu, "cpu0").value();
    constexpr std::uint64_t n = 100;
    plan_builder b("twice");
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    b.add(memory::copy<float>{.src = x, .dst = y});
    b.add(blas::scal<float>{.x = y, .n = n, .alpha = 2.0f});
    const plan p = await(io, gpu.async_load(b.finish().value())).value();
    const std::vector<float> in(n, 1.0f);
    std::vector<float> out(n);
    for (int i = 0; i < 3; ++i)
        REQUIRE(await(io, p.async_run(from(in), to(out))));
    const auto all = collect(io, metrics);
    const labels mine{{"device", "cpu0"}, {"plan", "twice"}};
    const auto with = [](std::string name, std::string value) {
        return labels{{"device", "cpu0"}, {"plan", "twice"}, {std::move(name), std::move(value)}};
    };
    CHECK(value_of(all, "coaccel_plan_runs_total", with("outcome", "completed")) == 3);
    CHECK(value_of(all, "coaccel_plan_runs_total", with("outcome", "failed")) == 0);
    CHECK(value_of(all, "coaccel_plan_reruns_total", mine) == 0);
    CHECK(value_of(all, "coaccel_plan_transferred_bytes_total", with("direction", "to_device")) == 3 * 400);
    CHECK(value_of(all, "coaccel_plan_transferred_bytes_total", with("direction", "to_host")) == 3 * 400);
    CHECK(value_of(all, "coaccel_plan_instances", mine) >= 1);
    CHECK(value_of(all, "coaccel_plan_running", mine) == 0);
    CHECK(value_of(all, "coaccel_plan_waiting", mine) == 0);
    CHECK(value_of(all, "coaccel_plan_quarantined", mine) == 0);
    const auto* runs = find_sample(all, "coaccel_plan_run_seconds", mine);
    REQUIRE(runs);
    const auto& times = std::get<histogram_snapshot>(runs->value);
    CHECK(times.count == 3);
    CHECK(times.sum > 0);
    CHECK(times.count_up_to(times.bounds.back()) == 3);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 0);
}

TEST_CASE("an empty device is refused")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto refused = metrics.add(device(), "none");
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(refused.error().message() == "registry.add: the device \"none\" is empty");
}

TEST_CASE("the samples of the second device of a name are dropped")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto a = make_device(io);
    auto b = make_device(io);
    const auto x = await(io, a.async_alloc<float>(1));
    auto first = metrics.add(a, "gpu").value();
    const auto second = metrics.add(b, "gpu").value();
    const auto all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_device_live_buffers", {{"device", "gpu"}}) == 1);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") > 10);
    CHECK(all.devices.size() == 2);
    first.remove();
    CHECK(value_of(collect(io, metrics), "coaccel_device_live_buffers", {{"device", "gpu"}}) == 0);
}

TEST_CASE("a stopped device still answers")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto gpu = make_device(io);
    const auto kept = metrics.add(gpu, "gpu").value();
    CHECK(metrics.devices().at(0).status.state == device_state::ready);
    CHECK(await(io, gpu.async_shutdown()));
    const auto all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_device_state", {{"device", "gpu"}, {"state", "stopped"}}) == 1);
    CHECK(value_of(all, "coaccel_telemetry_source_timeouts_total") == 0);
    CHECK(metrics.devices().at(0).status.state == device_state::stopped);
}

TEST_CASE("a device that does not answer delays a collection by the limit at most, and gets one request only")
{
    asio::io_context io, stuck;
    const registry metrics(io.get_executor(), {.source_timeout = 5ms});
    auto hung = make_device(stuck); // nothing runs its io_context
    auto fine = make_device(io);
    const auto a = metrics.add(hung, "hung").value();
    const auto b = metrics.add(fine, "fine").value();
    auto all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_telemetry_source_timeouts_total") == 1);
    CHECK_FALSE(find_sample(all, "coaccel_device_queued", {{"device", "hung"}}));
    CHECK(find_sample(all, "coaccel_device_queued", {{"device", "fine"}}));
    REQUIRE(all.devices.size() == 2);
    CHECK_FALSE(all.devices[0].stats);
    CHECK(all.devices[1].stats);

    CHECK(value_of(collect(io, metrics), "coaccel_telemetry_source_timeouts_total") == 2);
    // Late answers of ended collections are ignored; the next collection is complete.
    std::optional<snapshot> complete;
    metrics.async_collect([&](error_code, snapshot s) { complete = std::move(s); });
    test::run_until(stuck, [&] {
        io.poll();
        io.restart();
        return complete.has_value();
    });
    const bool answered = find_sample(*complete, "coaccel_device_queued", {{"device", "hung"}}) != nullptr;
    CHECK(answered == (value_of(*complete, "coaccel_telemetry_source_timeouts_total") == 2));
}

TEST_CASE("a device whose executor is destroyed counts as an error, without the time limit")
{
    asio::io_context io;
    const registry metrics(io.get_executor(), {.source_timeout = test::patience});
    std::optional<asio::io_context> other(std::in_place);
    auto gpu = make_device(*other);
    const auto kept = metrics.add(gpu, "gone").value();
    std::optional<snapshot> all;
    metrics.async_collect([&](error_code, snapshot s) { all = std::move(s); });
    other.reset();
    test::run_until(io, [&] { return all.has_value(); });
    CHECK(value_of(*all, "coaccel_telemetry_source_errors_total") == 1);
    // A request to a device without its execution context ends at once.
    const auto again = collect(io, metrics);
    CHECK(value_of(again, "coaccel_telemetry_source_errors_total") == 2);
    CHECK(value_of(again, "coaccel_telemetry_source_timeouts_total") == 0);
}

TEST_CASE("a waiting collection can be cancelled")
{
    for (const auto type :
         {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
        asio::io_context io, stuck;
        const registry metrics(io.get_executor(), {.source_timeout = test::patience});
        auto hung = make_device(stuck);
        const auto kept = metrics.add(hung, "hung").value();
        asio::cancellation_signal cancel;
        std::optional<error_code> ended;
        metrics.async_collect(
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code ec, const snapshot&) { ended = ec; }));
        io.poll();
        CHECK_FALSE(ended);
        cancel.emit(type);
        CHECK_FALSE(ended);
        test::run_out(io);
        CHECK(ended == asio::error::operation_aborted);
        test::run_out(stuck);
    }
}

TEST_CASE("collections are destroyed with their execution context while a device owes an answer")
{
    asio::io_context stuck;
    std::optional<registry> metrics;
    std::optional<registration> kept;
    auto hung = make_device(stuck);
    {
        asio::io_context io;
        metrics.emplace(io.get_executor());
        kept = metrics->add(hung, "hung").value();
        metrics->async_collect([](error_code, const snapshot&) { FAIL("called"); });
        io.poll();
    }
    test::run_out(stuck);
}

TEST_CASE("a registration keeps its device")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto kept = metrics.add(make_device(io), "gpu").value();
    CHECK(value_of(collect(io, metrics), "coaccel_device_state", {{"device", "gpu"}, {"state", "ready"}}) == 1);
    kept.remove();
    test::run_out(io);
    CHECK(metrics.devices().empty());
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_registry_devices
