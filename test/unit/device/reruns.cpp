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

namespace test_device_reruns {

// Runs of plans that were lost with their context. The host backend loses a context at the next op when the injector
// is told so; this counts as a fault of the op.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using asio::error::operation_aborted;
using test::await;
using test::numbers;

// So many that the outputs are copied by an op after the run.
constexpr std::size_t n = 70'000;
/// The first elements of runs that do harm.
constexpr float poison = -1;
constexpr float hanging = -2;

/// Functions without captures use these.
std::atomic<fault_injector*> current_injector{nullptr};
std::atomic<int> hanging_calls{0};

/// What the next op does, which is the copy of the run's own output if the run is alone. A hanging run ends its context
/// at first, then hangs, then succeeds.
void do_harm(float first)
{
    if (first == poison || (first == hanging && hanging_calls == 0))
        current_injector.load()->poison();
    else if (first == hanging && hanging_calls == 1)
        current_injector.load()->hang();
    hanging_calls += first == hanging;
}

/// Doubles its input.
jit::kernel doubling(asio::io_context& io, device& gpu)
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

plan_description doubling_plan(const jit::kernel& k, mark m = mark::pure)
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

TEST_SUITE_BEGIN("reruns");

TEST_CASE_FIXTURE(fixture, "callers of a repeatable plan notice nothing of a loss")
{
    const plan p = load();
    for (int i = 0; i < 12; ++i)
        start(p);
    lose();
    wait_for_all();
    CHECK(succeeded() == 12);
    const auto s = stats();
    CHECK(s.generation == 2);
    CHECK(s.failed == 0);
    CHECK(s.reruns >= 1);
    CHECK(s.reruns <= 4);
    CHECK(s.convicted == 0);
}

TEST_CASE_FIXTURE(fixture, "of many runs only the poisoned ones fail, each once")
{
    const plan p = load();
    for (int i = 1; i <= 40; ++i)
        start(p, i % 10 == 0 ? poison : 1);
    wait_for_all();
    CHECK(succeeded() == 36);
    CHECK(failed_with(errc::context_lost) == 4);
    for (std::size_t i = 9; i < 40; i += 10)
        CHECK(runs[i]->ec.message().starts_with("plan doubling: it ended the context while nothing else was on it, so "
                                                "it does not run again: "));
    wait_until_ready();
    CHECK(stats().convicted == 4);
    CHECK(stats().failed == 4);
}

TEST_CASE("a conviction gives back the restarts that it explains")
{
    fixture f([](device_options& o) { o.restart.max_restarts = 1; });
    const plan p = f.load();
    for (std::size_t round = 1; round <= 4; ++round) {
        f.start(p, poison);
        f.wait_for_all();
        CHECK(f.failed_with(errc::context_lost) == round);
        f.wait_until_ready();
    }
    // A loss for which no cause is found counts.
    f.start(p);
    f.lose();
    f.wait_for_all();
    CHECK(f.succeeded() == 1);
    f.start(p);
    f.lose();
    f.wait_for_all();
    CHECK(f.failed_with(errc::device_failed) == 1);
}

TEST_CASE_FIXTURE(fixture, "runs of plans that are not repeatable, or may not be repeated, are lost")
{
    const plan unmarked = load(doubling_plan(kernel, mark::none));
    CHECK_FALSE(unmarked.description().repeatable());
    const plan never = load({.rerun = rerun_policy::never});
    CHECK(never.description().repeatable());
    for (const plan& p : {unmarked, never}) {
        run& lost = start(p);
        lose();
        wait_for_all();
        CHECK(lost.failed_with(errc::context_lost));
        wait_until_ready();
        // The device has loaded the plan again.
        run& next = start(p);
        wait_for_all();
        CHECK(next.succeeded());
    }
    CHECK(stats().reruns == 0);
}

TEST_CASE_FIXTURE(fixture, "a run that may be repeated once ends with the second loss")
{
    const plan p = load({.instances = 4, .initial = 4, .rerun = rerun_policy::once});
    run& poisoned = start(p, poison);
    run& innocent = start(p);
    wait_for_all();
    CHECK(poisoned.failed_with(errc::context_lost));
    CHECK(innocent.succeeded());
}

TEST_CASE_FIXTURE(fixture, "while suspects run, other calls wait, and then run")
{
    const plan p = load();
    for (int i = 0; i < 4; ++i)
        start(p);
    lose();
    auto other = await(io, gpu.async_load(test::axpy_plan()));
    REQUIRE(other);
    const auto x = numbers(test::plan_elements);
    std::vector<float> y(test::plan_elements);
    CHECK(await(io, other.value().async_run(from(x), to(y))));
    CHECK(y == test::expected(x));
    auto b = await(io, gpu.async_upload(numbers(16)));
    REQUIRE(b);
    CHECK(await(io, gpu.async_exec(memory::fill<float>{b.value(), 1.0f})));
    CHECK(await(io, gpu.async_download(b.value())).value() == std::vector<float>(16, 1));
    wait_for_all();
    CHECK(succeeded() == 4);
}

TEST_CASE_FIXTURE(fixture, "ops that can be repeated are suspects too")
{
    const plan p = load();
    const auto data = numbers(16);
    error_code uploaded = errc::no_value;
    gpu.with({.retry = retry::idempotent}).async_upload(data, [&](error_code ec, const buffer<float>&) {
        uploaded = ec;
    });
    start(p, poison);
    start(p);
    lose();
    wait_for_all();
    test::run_until(io, [&] { return uploaded != errc::no_value; });
    CHECK_FALSE(uploaded);
    CHECK(succeeded() == 1);
    CHECK(failed_with(errc::context_lost) == 1);
}

TEST_CASE_FIXTURE(fixture, "too many convictions within a minute put a plan into quarantine until it is revived")
{
    const plan p = load({.instances = 1, .initial = 1, .poison_limit = 2});
    const plan other = load();
    for (int round = 1; round <= 3; ++round) {
        runs.clear();
        run& poisoned = start(p, poison);
        // It waits for the instance.
        run& waiting = start(p);
        run& elsewhere = start(other);
        wait_for_all();
        wait_until_ready();
        CHECK(poisoned.failed_with(errc::context_lost));
        CHECK(p.quarantined() == (round == 3));
        CHECK(waiting.failed_with(errc::plan_quarantined) == (round == 3));
        CHECK(waiting.succeeded() == (round != 3));
        CHECK(elsewhere.succeeded());
    }
    CHECK(runs[1]->ec.message() == "plan doubling: more than 2 runs ended the context of the device within a minute");
    CHECK(runs[1]->ec == fault::stopped);
    run& refused = start(p);
    wait_for_all();
    CHECK(refused.failed_with(errc::plan_quarantined));
    CHECK(stats().quarantined_plans == 1);
    CHECK_FALSE(other.quarantined());

    CHECK(await(io, p.async_revive()));
    CHECK_FALSE(p.quarantined());
    CHECK(stats().quarantined_plans == 0);
    run& again = start(p);
    wait_for_all();
    CHECK(again.succeeded());
    CHECK(await(io, p.async_revive()));
    CHECK(await(io, p.async_unload()));
    CHECK(await(io, p.async_revive()).error() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(slow_to_return, "a suspect that waits for the next context can be cancelled, and has its deadline")
{
    const plan p = load();
    run& cancelled = start(p);
    run& expires = start(p, 1, {.deadline = exec_options::clock::now() + 300ms});
    run& stays = start(p);
    lose();
    test::run_until(io, [&] { return gpu.status().state == device_state::rebuilding; });
    CHECK(cancelled.ends + expires.ends + stays.ends == 0);
    cancelled.signal.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return cancelled.ends + expires.ends == 2; });
    CHECK(cancelled.ec == operation_aborted);
    CHECK(expires.ec == errc::deadline_exceeded);
    CHECK(stays.ends == 0);
    SUBCASE("until the device is abandoned")
    {
        CHECK(await(io, gpu.async_shutdown(shutdown::abandon)));
        wait_for_all();
        CHECK(stays.failed_with(errc::device_stopped));
    }
    SUBCASE("until all calls are cancelled")
    {
        gpu.cancel();
        wait_for_all();
        CHECK(stays.ec == operation_aborted);
    }
    CHECK(await(io, gpu.async_shutdown(shutdown::abandon)));
}

TEST_CASE("suspects of a device that has used up its restarts end with device_failed")
{
    fixture f([](device_options& o) { o.restart.max_restarts = 0; });
    const plan p = f.load();
    for (int i = 0; i < 6; ++i)
        f.start(p);
    f.lose();
    f.wait_for_all();
    CHECK(f.succeeded() + f.failed_with(errc::device_failed) == 6);
    CHECK(f.failed_with(errc::device_failed) >= 1);
}

TEST_CASE_FIXTURE(fixture, "a device that drains repeats its runs first")
{
    const plan p = load({.instances = 2, .initial = 2});
    for (int i = 0; i < 5; ++i)
        start(p, i == 2 ? poison : 1);
    CHECK(await(io, gpu.async_shutdown()));
    CHECK(succeeded() == 4);
    CHECK(failed_with(errc::context_lost) == 1);
}

TEST_CASE_FIXTURE(fixture, "a replacement that is requested while suspects run comes after them")
{
    const plan p = load();
    for (int i = 0; i < 4; ++i)
        start(p);
    lose();
    CHECK(await(io, gpu.async_replace()));
    wait_for_all();
    CHECK(succeeded() == 4);
}

TEST_CASE_FIXTURE(fixture, "a run of a plan that is being unloaded is lost")
{
    const plan p = load();
    exec_options how;
    SUBCASE("") {}
    SUBCASE("even if it may be repeated otherwise")
    {
        how.retry = retry::idempotent;
    }
    run& r = start(p, poison, how);
    error_code unloaded = errc::no_value;
    p.async_unload([&](error_code ec) { unloaded = ec; });
    wait_for_all();
    test::run_until(io, [&] { return unloaded != errc::no_value; });
    CHECK_FALSE(unloaded);
    CHECK(r.failed_with(errc::context_lost));
}

TEST_CASE_FIXTURE(fixture, "a suspect that never ends keeps other calls from the device for a few seconds only")
{
    const plan p = load();
    hanging_calls = 0;
    run& hangs = start(p, hanging, {.deadline = exec_options::clock::now() + 30s});
    test::run_until(io, [&] { return injector.played() == 2; });
    run& other = start(p);
    test::run_until(io, [&] { return other.ends == 1; });
    CHECK(other.succeeded());
    CHECK(hangs.ends == 0);
    // A loss afterwards makes it a suspect again.
    start(p);
    lose();
    wait_for_all();
    CHECK(hangs.succeeded());
}

TEST_CASE_FIXTURE(fixture, "runs that have been started are repeated although their plan has no handles any more")
{
    plan p = load();
    for (int i = 0; i < 4; ++i)
        start(p, i == 2 ? poison : 1);
    p = {};
    wait_for_all();
    CHECK(succeeded() == 3);
    CHECK(failed_with(errc::context_lost) == 1);
    // Then the plan is unloaded.
    test::run_until(io, [&] { return stats().live_buffers == 0; });
}

TEST_CASE("when the runs have ended, nothing keeps the executor running")
{
    fixture f([](device_options& o) { o.context.hang_timeout = 1h; });
    const plan p = f.load({.instances = 1, .initial = 1, .suspect_after = {.factor = 2, .at_least = 1h}});
    // The first one tells how long runs take.
    for (int i = 0; i < 2; ++i) {
        f.start(p);
        f.wait_for_all();
    }
    SUBCASE("that could have been overdue") {}
    SUBCASE("that were alone")
    {
        f.start(p);
        f.lose();
        f.wait_for_all();
    }
    CHECK(f.succeeded() == f.runs.size());
    f.io.restart();
    f.io.run_for(2s);
    CHECK(f.io.stopped());
}

TEST_CASE("without threads, too, only the poisoned run fails")
{
    fixture f([](device_options& o) { o.host.mode = host_mode::inline_; });
    const plan p = f.load();
    for (int i = 0; i < 10; ++i)
        f.start(p, i == 3 ? poison : 1);
    f.wait_for_all();
    CHECK(f.succeeded() == 9);
    CHECK(f.runs[3]->failed_with(errc::context_lost));
}

TEST_CASE_FIXTURE(fixture, "options of reruns out of range are refused with their name and value")
{
    const auto refusal = [&](const plan_options& how) {
        const auto made = await(io, gpu.async_load(doubling_plan(kernel), how));
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::invalid_option);
        return made.error().message();
    };
    CHECK(refusal({.poison_limit = 0}) == "poison_limit is 0; it must be at least 1");
    CHECK(refusal({.rerun = static_cast<rerun_policy>(9)}) == "rerun is 9; it must be one of its enumerators");
    CHECK(refusal({.suspect_after = {.factor = 1}}) == "suspect_after.factor is 1; it must be 0 or at least 2");
    CHECK(refusal({.suspect_after = {.factor = 3, .at_least = 0ms}}) ==
          "suspect_after.at_least is 0; it must be at least 1 ms");
    CHECK(refusal({.suspect_after = {.factor = 3}}) ==
          "async_load: suspect_after needs context.hang_timeout, which ends a run that never ends");
}

TEST_CASE("calls of an empty plan name it")
{
    std::promise<error_code> told;
    plan().async_revive([&](error_code ec) { told.set_value(ec); });
    const auto ec = told.get_future().get();
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message() == "plan: it is empty: default-constructed or moved from");
    CHECK_FALSE(plan().quarantined());
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_reruns
