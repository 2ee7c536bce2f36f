#ifndef COACCEL_TEST_UNIT_DEVICE_RERUN_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_RERUN_FIXTURE_HPP

#include "support/device_fixture.hpp"
#include "support/example_plans.hpp"
#include "support/numbers.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

// Runs of plans that were lost with their context. The host backend loses a context at the next op when the injector
// is told so; this counts as a fault of the op.
namespace test::reruns {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::numbers;

// So many that the outputs are copied by an op after the run.
inline constexpr std::size_t n = 70'000;
/// The first elements of runs that do harm.
inline constexpr float poison = -1;
inline constexpr float hanging = -2;

/// Functions without captures use these.
inline std::atomic<fault_injector*> current_injector{nullptr};
inline std::atomic<int> hanging_calls{0};

/// What the next op does, which is the copy of the run's own output if the run is alone. A hanging run ends its context
/// at first, then hangs, then succeeds.
inline void do_harm(float first)
{
    if (first == poison || (first == hanging && hanging_calls == 0))
        current_injector.load()->poison();
    else if (first == hanging && hanging_calls == 1)
        current_injector.load()->hang();
    hanging_calls += first == hanging;
}

/// Doubles its input.
inline jit::kernel doubling(asio::io_context& io, device& gpu)
{
    auto made = await(
        io,
        gpu.async_compile("never looked at",
                          jit::compile_options("doubling").host([](const jit::launch_shape&, const float* x, float* y) {
                              for (std::size_t i = 0; i < n; ++i)
                                  y[i] = 2 * x[i];
                              do_harm(x[0]);
                          })));
    REQUIRE_MESSAGE(made, made.error().message());
    return made.value();
}

enum class mark : std::uint8_t { none, pure };

inline plan_description doubling_plan(const jit::kernel& k, mark m = mark::pure)
{
    plan_builder b("doubling");
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    const auto op = jit::launch(k, {.grid = {1}, .block = {1}}, in(x), out(y));
    if (m == mark::pure)
        b.add(pure(op));
    else
        b.add(op);
    return b.finish().value();
}

struct run {
    explicit run(float first) : x(numbers(n)) { x[0] = first; }

    bool succeeded() const
    {
        auto twice = x;
        for (float& v : twice)
            v *= 2;
        return ends == 1 && !ec && y == twice;
    }
    bool failed_with(errc e) const { return ends == 1 && ec == e; }

    std::vector<float> x;
    std::vector<float> y = std::vector<float>(n);
    error_code ec = errc::no_value;
    int ends = 0;
    asio::cancellation_signal signal;
};

struct injector_in_use {
    injector_in_use() { current_injector = &injector; }

    fault_injector injector;
};

struct fixture : injector_in_use, test::device_fixture {
    fixture() : fixture([](device_options&) {}) {}

    template <class Change>
    explicit fixture(Change change) : device_fixture(options(change))
    {
        kernel = doubling(io, gpu);
    }

    template <class Change>
    device_options options(Change change)
    {
        auto o = test::pool_options();
        o.host.injector = &injector;
        o.restart.jitter = 0;
        change(o);
        return o;
    }

    plan load(const plan_description& d, plan_options how = {.instances = 4, .initial = 4})
    {
        auto made = await(io, gpu.async_load(d, how));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    plan load(plan_options how = {.instances = 4, .initial = 4}) { return load(doubling_plan(kernel), how); }

    run& start(const plan& p, float first = 1, exec_options how = {})
    {
        run& r = *runs.emplace_back(std::make_unique<run>(first));
        p.with(how).async_run(from(r.x), to(r.y), asio::bind_cancellation_slot(r.signal.slot(), [&r](error_code ec) {
                                  r.ec = ec;
                                  ++r.ends;
                              }));
        return r;
    }

    /// The next op ends its context.
    void lose()
    {
        const auto before = injector.played();
        injector.poison();
        test::run_until(io, [&] { return injector.played() > before; });
    }

    void wait_for_all()
    {
        test::run_until(io, [&] { return std::ranges::all_of(runs, [](const auto& r) { return r->ends > 0; }); });
    }

    void wait_until_ready()
    {
        test::run_until(io, [&] { return gpu.status().state == device_state::ready; });
    }

    std::size_t succeeded() const
    {
        return static_cast<std::size_t>(std::ranges::count_if(runs, [](const auto& r) { return r->succeeded(); }));
    }

    std::size_t failed_with(errc e) const
    {
        return static_cast<std::size_t>(std::ranges::count_if(runs, [&](const auto& r) { return r->failed_with(e); }));
    }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    jit::kernel kernel;
    std::vector<std::unique_ptr<run>> runs;
};

struct slow_to_return : fixture {
    slow_to_return()
        : fixture([](device_options& o) {
              o.restart.initial_backoff = 1h;
              o.restart.max_backoff = 1h;
          })
    {}
};

} // namespace test::reruns

#endif
