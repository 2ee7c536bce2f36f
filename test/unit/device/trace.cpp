#include "support/device_fixture.hpp"
#include "support/gate.hpp"

#include <coaccel/core/trace.hpp>
#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace test_device_trace {

// The events that a device writes into a trace_buffer.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;

device_options traced(const std::shared_ptr<trace_buffer>& b, device_options o = test::pool_options())
{
    o.trace = b.get();
    return o;
}

struct trace_reader {
    explicit trace_reader(const trace_buffer& b) : all(b.snapshot()) {}

    std::string name(const trace_event& e) const { return all.names.at(e.name.index); }
    std::string track(const trace_event& e) const { return all.tracks.at(e.track.index); }
    std::string text(const trace_event& e) const { return all.texts.at(e.text); }

    std::vector<trace_event> named(std::string_view name_) const
    {
        std::vector<trace_event> found;
        std::ranges::copy_if(all.events, std::back_inserter(found), [&](const auto& e) { return name(e) == name_; });
        return found;
    }

    std::vector<trace_event> of(trace_kind kind) const
    {
        std::vector<trace_event> found;
        std::ranges::copy_if(all.events, std::back_inserter(found), [&](const auto& e) { return e.kind == kind; });
        return found;
    }

    trace_snapshot all;
};

plan_description scaling_plan()
{
    plan_builder b("scaling");
    const auto x = b.input<float>(4);
    const auto y = b.output<float>(4);
    b.add(memory::copy<float>{x, y});
    b.add(blas::scal<float>{.x = y, .n = 4, .alpha = 2.0f});
    return b.finish().value();
}

TEST_SUITE_BEGIN("device trace");

TEST_CASE("ops, transfers and runs have events with their times and the id of the caller")
{
    for (const auto& options : {test::pool_options(), test::inline_options()}) {
        const auto buffer = trace_buffer::create(256);
        const auto before = trace_event::clock::now();
        {
            test::device_fixture f(traced(buffer, options));
            const std::vector<float> data(4, 1.0f);
            auto x = f.upload(data);
            CHECK(await(f.io, f.gpu.with(exec_options{.trace = 77}).async_exec(memory::fill<float>{x, 1.0f})));
            CHECK(f.download(x) == data);
            const memory::fill<float> fill{x, 2.0f};
            CHECK(await(f.io, f.gpu.async_exec(seq(fill, fill))));
            auto p = await(f.io, f.gpu.async_load(scaling_plan())).value();
            std::vector<float> y(4);
            CHECK(await(f.io, p.with(exec_options{.trace = 78}).async_run(from(data), to(y))));
            CHECK(y == std::vector<float>(4, 2.0f));
        }
        const auto after = trace_event::clock::now();
        const trace_reader t(*buffer);
        REQUIRE(t.of(trace_kind::transfer).size() == 2);
        for (const auto& e : t.of(trace_kind::transfer))
            CHECK(e.value == 16);
        REQUIRE(t.named("memory.fill<f32>").size() == 1);
        const auto op = t.named("memory.fill<f32>").front();
        CHECK(op.kind == trace_kind::op);
        CHECK(op.parent == 77);
        CHECK(t.named("seq(memory.fill<f32>, memory.fill<f32>)").size() == 1);
        REQUIRE(t.of(trace_kind::run).size() == 1);
        const auto run = t.of(trace_kind::run).front();
        CHECK(t.name(run) == "plan scaling");
        CHECK(run.parent == 78);
        CHECK(run.value == 32);
        const auto ready = t.of(trace_kind::restart);
        REQUIRE(ready.size() == 1);
        CHECK(ready.front().value == 1);
        CHECK(ready.front().duration == 0ns);
        CHECK(t.text(ready.front()) == "host");
        CHECK(t.of(trace_kind::measured).empty());
        CHECK(t.all.tracks.size() == 2);
        for (const auto& e : t.all.events) {
            CAPTURE(t.name(e));
            CHECK(t.track(e).starts_with("device "));
            CHECK(e.outcome == trace_outcome::succeeded);
            CHECK(e.begin - e.queued >= before);
            CHECK(e.queued >= 0ns);
            CHECK(e.duration >= 0ns);
            CHECK(e.begin + e.duration <= after);
        }
    }
}

TEST_CASE("the wait in the queue is apart from the run, and every outcome is told")
{
    const auto buffer = trace_buffer::create(256);
    auto options = traced(buffer);
    options.queue.max_in_flight = 1;
    asio::io_context io;
    auto gpu = test::make_device(io, options);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    test::gate gate;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    test::run_until(io, [&] { return gate.reached(1); });

    const memory::fill<float> fill{.dst = x, .value = 1.0f};
    asio::cancellation_signal cancel;
    error_code cancelled, expired, waited = errc::no_value;
    gpu.async_exec(fill, asio::bind_cancellation_slot(cancel.slot(), [&](error_code ec) { cancelled = ec; }));
    gpu.with(within(0ms)).async_exec(fill, [&](error_code ec) { expired = ec; });
    gpu.async_exec(fill, [&](error_code ec) { waited = ec; });
    test::run_until(io, [&] { return bool(expired); });
    cancel.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return bool(cancelled); });
    const auto released = trace_event::clock::now();
    gate.open();
    test::run_until(io, [&] { return waited != errc::no_value; });
    CHECK_FALSE(await(io, gpu.async_exec(memory::fill<float>{})));

    const trace_reader t(*buffer);
    const auto fills = t.named("memory.fill<f32>");
    REQUIRE(fills.size() == 4);
    std::map<trace_outcome, trace_event> by_outcome;
    for (const auto& e : fills)
        by_outcome[e.outcome] = e;
    REQUIRE(by_outcome.size() == 4);
    CHECK(by_outcome.at(trace_outcome::cancelled).duration == 0ns);
    CHECK(by_outcome.at(trace_outcome::expired).duration == 0ns);
    CHECK(by_outcome.contains(trace_outcome::failed));
    const auto ran = by_outcome.at(trace_outcome::succeeded);
    CHECK(ran.begin >= released);
    CHECK(ran.begin - ran.queued < released);
}

/// Functions without captures use it.
std::atomic<fault_injector*> injector_of_kernel{nullptr};

TEST_CASE("a fault, the reruns, the conviction, the quarantine and the restarts are told")
{
    const auto buffer = trace_buffer::create(1024);
    fault_injector injector;
    injector_of_kernel = &injector;
    auto options = traced(buffer);
    options.host.injector = &injector;
    options.restart.jitter = 0;
    test::device_fixture f(options);
    // So many that the output is copied by an op after the run, which then ends the context.
    constexpr std::size_t n = 70'000;
    auto kernel =
        await(f.io, f.gpu.async_compile("never looked at", jit::compile_options("poison").host(
                                                               [](const jit::launch_shape&, const float*, float*) {
                                                                   injector_of_kernel.load()->poison();
                                                               })))
            .value();
    plan_builder b("bad");
    const auto in_slot = b.input<float>(n);
    const auto out_slot = b.output<float>(n);
    b.add(pure(jit::launch(kernel, {.grid = {1}, .block = {1}}, in(in_slot), out(out_slot))));
    auto p = await(f.io, f.gpu.async_load(b.finish().value(), plan_options{.poison_limit = 1})).value();
    std::vector<float> x(n), y(n);
    for (int round = 0; round < 2; ++round) {
        CHECK(await(f.io, p.async_run(from(x), to(y))).error() == errc::context_lost);
        test::run_until(f.io, [&] { return f.gpu.status().state == device_state::ready; });
    }
    CHECK(p.quarantined());
    const auto generation = f.gpu.watch_generation().get();

    const trace_reader t(*buffer);
    // Each run that was lost with its context.
    const auto runs = t.of(trace_kind::run);
    CHECK(runs.size() == generation - 1);
    for (const auto& e : runs) {
        CHECK(e.outcome == trace_outcome::lost);
        CHECK(t.name(e) == "plan bad");
    }
    const auto faults = t.of(trace_kind::fault);
    REQUIRE(faults.size() == generation - 1);
    for (const auto& e : faults) {
        CHECK(t.name(e) == "context lost");
        CHECK(t.text(e).starts_with("fault: "));
    }
    REQUIRE(t.of(trace_kind::conviction).size() == 2);
    CHECK(t.text(t.of(trace_kind::conviction).back()) == "plan bad");
    REQUIRE(t.of(trace_kind::quarantine).size() == 1);
    CHECK(t.text(t.of(trace_kind::quarantine).front()) == "plan bad");
    const auto restarts = t.of(trace_kind::restart);
    REQUIRE(restarts.size() == generation);
    CHECK(restarts[0].duration == 0ns);
    for (std::size_t i = 1; i < restarts.size(); ++i) {
        CHECK(restarts[i].value == i + 1);
        CHECK(restarts[i].begin == faults[i - 1].begin);
        CHECK(restarts[i].duration > 0ns);
    }
}

TEST_CASE("a device that fails for good says so")
{
    const auto buffer = trace_buffer::create(64);
    fault_injector injector;
    auto options = traced(buffer);
    options.host.injector = &injector;
    options.restart.max_restarts = 0;
    test::device_fixture f(options);
    auto x = f.alloc<float>(4);
    injector.poison();
    CHECK_FALSE(await(f.io, f.gpu.async_exec(memory::fill<float>{x, 1.0f})));
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(trace_reader(*buffer).named("device failed").size() == 1);
    CHECK(await(f.io, f.gpu.async_exec(memory::fill<float>{x, 1.0f})).error() == errc::device_failed);
    const auto refused = trace_reader(*buffer).all.events.back();
    CHECK(refused.outcome == trace_outcome::failed);
    CHECK(refused.duration == 0ns);
}

TEST_CASE("the chosen share of the runs is measured")
{
    const auto buffer = trace_buffer::create(256);
    auto options = traced(buffer);
    options.host.timed_runs = 3;
    test::device_fixture f(options);
    auto p = await(f.io, f.gpu.async_load(scaling_plan(), plan_options{.instances = 1, .initial = 1})).value();
    const std::vector<float> x(4, 1.0f);
    std::vector<float> y(4);
    for (int i = 0; i < 7; ++i)
        CHECK(await(f.io, p.async_run(from(x), to(y))));
    const trace_reader t(*buffer);
    CHECK(t.of(trace_kind::run).size() == 7);
    const auto measured = t.of(trace_kind::measured);
    REQUIRE(measured.size() == 3);
    for (const auto& e : measured) {
        CHECK(e.duration > 0ns);
        CHECK(t.name(e) == "plan scaling");
        CHECK(t.track(e).ends_with(", measured"));
    }
    // The first, the fourth and the seventh; each follows its run.
    for (std::size_t i = 0; i < 3; ++i) {
        const auto run = t.of(trace_kind::run)[3 * i];
        CHECK(measured[i].begin + measured[i].duration == run.begin + run.duration);
        CHECK(measured[i].duration <= run.duration);
    }
}

TEST_CASE("the device keeps the buffer, and devices share one")
{
    auto buffer = trace_buffer::create(64);
    const std::weak_ptr<trace_buffer> weak = buffer;
    asio::io_context io;
    {
        auto a = test::make_device(io, traced(buffer));
        auto b = test::make_device(io, traced(buffer));
        CHECK(buffer->snapshot().tracks.size() == 3);
        buffer.reset();
        REQUIRE(weak.lock());
        auto x = await(io, a.async_alloc<float>(4));
        auto y = await(io, b.async_alloc<float>(4));
        CHECK(trace_reader(*weak.lock()).named("memory.allocate").size() == 2);
    }
    // A thread that ends a context keeps its device for a moment longer.
    test::run_until(io, [&] { return weak.expired(); });
}

TEST_SUITE_END();

} // namespace
} // namespace test_device_trace
