#include "inventory.hpp"
#include "isolated.hpp"
#include "ready_workers.hpp"
#include "shared_mappings.hpp"
#include "support/sanitized.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <sys/resource.h>

namespace test_integration_durable_states {

// States of plans that outlive the workers of their device.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::held;

constexpr std::size_t n = 4;
using values = std::vector<float>;

/// sum += x; y = sum. The sum begins with 100.
plan_description summing(std::optional<durable> how)
{
    plan_builder b("summing");
    const values start(n, 100.0f);
    const auto sum = how ? b.state<float>(start, *how, "sum") : b.state<float>(start, "sum");
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    b.add(blas::axpy<float>{.x = x, .y = sum, .n = n, .alpha = 1});
    b.add(memory::copy<float>{sum, y});
    return b.finish().value();
}

device_options options(int standby = 0, fault_injector* faults = nullptr)
{
    auto o = test::isolated_options();
    o.standby = standby;
    o.restart.initial_backoff = o.restart.max_backoff = 1ms;
    o.host.injector = faults;
    return o;
}

struct fixture : test::isolated_fixture {
    explicit fixture(const device_options& o = options()) : isolated_fixture(o) {}

    plan load(const plan_description& d)
    {
        auto made = await(io, gpu.async_load(d));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    /// Adds to the sum, and returns it.
    result<float> add(const plan& p, float value)
    {
        const values x(n, value);
        values y(n);
        const auto done = await(io, p.async_run(from(x), to(y)));
        if (!done)
            return done.error();
        CHECK(y == values(n, y[0]));
        return y[0];
    }

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    /// Waits until the standby has this many plans.
    void wait_for_plans(std::uint64_t count)
    {
        test::run_until(io, [&] { return stats().standby_plans == count; });
    }

    void lose()
    {
        const generation next = gpu.status().generation + 1;
        send(SIGKILL);
        wait_for_generation(next);
    }

    void fault(fault_injector& faults)
    {
        const generation next = gpu.status().generation + 1;
        faults.poison();
        CHECK(run(memory::fill<float>{alloc<float>(1), 0.0f}) == errc::context_lost);
        wait_for_generation(next);
    }

    /// The worker is killed while a run is on it, which it has not begun.
    void lose_during_a_run(const plan& p)
    {
        const generation next = gpu.status().generation + 1;
        const int worker = process();
        REQUIRE(::kill(worker, SIGSTOP) == 0);
        const values x(n, 1.0f);
        values y(n);
        std::optional<error_code> ended;
        p.async_run(from(x), to(y), [&](error_code ec) { ended = ec; });
        test::run_until(io, [&] { return stats().in_flight == 1; });
        REQUIRE(::kill(worker, SIGKILL) == 0);
        test::run_until(io, [&] { return ended.has_value(); });
        CHECK(*ended == errc::context_lost);
        wait_for_generation(next);
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated durable states");

TEST_CASE("a durable state continues after a loss, an ordinary one begins again")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        fixture f(options(standby));
        const plan kept = f.load(summing(durable{}));
        const plan ordinary = f.load(summing(std::nullopt));
        CHECK(f.add(kept, 1).value() == 101);
        CHECK(f.add(ordinary, 1).value() == 101);
        f.lose();
        CHECK(f.add(kept, 1).value() == 102);
        CHECK(f.add(ordinary, 1).value() == 101);
        CHECK_FALSE(kept.suspect());
        REQUIRE(await(f.io, f.gpu.async_replace()));
        CHECK(f.add(kept, 1).value() == 103);
    }
}

TEST_CASE("a standby loads a plan without its durable state, which it maps when it has taken over")
{
    fixture f(options(1));
    const plan kept = f.load(summing(durable{}));
    const plan ordinary = f.load(summing(std::nullopt));
    for (int i = 1; i <= 5; ++i) {
        CHECK(f.add(kept, 1).value() == 100.0f + static_cast<float>(2 * i - 1));
        f.wait_for_plans(2);
        const int worker = f.process();
        const auto ready = test::ready_besides(worker);
        REQUIRE(ready.size() == 1);
        const auto before = test::mappings::of(worker);
        CHECK(before.writable == 1);
        CHECK(test::mappings::of(ready[0]).inodes.empty());
        f.lose();
        CHECK(f.process() == ready[0]);
        CHECK(f.add(kept, 1).value() == 100.0f + static_cast<float>(2 * i));
        CHECK(f.add(ordinary, 1).value() == 101);
        const auto after = test::mappings::of(f.process());
        CHECK(after.writable == 1);
        CHECK(after.inodes == before.inodes);
        // The states and the instances of both; nothing is left of the stand-in.
        test::run_until(f.io, [&] { return f.stats().live_buffers == 4; });
    }
    CHECK(held() == 1);
}

TEST_CASE("a standby that is killed before or after it has taken over costs no content")
{
    fixture f(options(1));
    const plan p = f.load(summing(durable{}));
    for (int i = 1; i <= 10; ++i) {
        CHECK(f.add(p, 1).value() == 100.0f + static_cast<float>(i));
        f.wait_for_plans(1);
        const generation next = f.gpu.status().generation + 1;
        const int worker = f.process();
        const auto ready = test::ready_besides(worker);
        REQUIRE(ready.size() == 1);
        REQUIRE(::kill(ready[0], i % 2 == 0 ? SIGKILL : SIGSTOP) == 0);
        REQUIRE(::kill(worker, SIGKILL) == 0);
        if (i % 2 != 0) {
            // It has taken over, and has not begun to import the state.
            f.wait_for_generation(next);
            REQUIRE(::kill(ready[0], SIGKILL) == 0);
        }
        test::run_until(f.io, [&] { return f.gpu.status().generation >= next; });
    }
    CHECK(f.add(p, 1).value() == 111);
    CHECK_FALSE(p.suspect());
}

TEST_CASE("a durable sum is exact over 100 losses")
{
    fixture f(options(1));
    const plan p = f.load(summing(durable{}));
    for (int i = 1; i <= 100; ++i) {
        CAPTURE(i);
        REQUIRE(f.add(p, 1).value() == 100.0f + static_cast<float>(i));
        f.lose();
    }
}

TEST_CASE("a rule decides what becomes of a state that may have been half-written")
{
    for (const int standby : {0, 1})
        for (const bool by_fault : {false, true})
            for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
                CAPTURE(by_fault);
                CAPTURE(standby);
                CAPTURE(to_string(rule));
                fault_injector faults;
                fixture f(options(standby, &faults));
                const plan p = f.load(summing(durable{rule}));
                CHECK(f.add(p, 1).value() == 101);
                // The standby has its copy before anything becomes suspect.
                if (standby > 0)
                    f.wait_for_plans(1);
                if (by_fault)
                    f.fault(faults);
                else
                    f.lose_during_a_run(p);
                const auto after = f.add(p, 1);
                CHECK(p.suspect() == (rule == suspect_rule::fail));
                if (rule == suspect_rule::keep) {
                    REQUIRE_MESSAGE(after, after.error().message());
                    CHECK(after.value() == 102);
                } else if (rule == suspect_rule::reset) {
                    REQUIRE_MESSAGE(after, after.error().message());
                    CHECK(after.value() == 101);
                } else {
                    REQUIRE_FALSE(after);
                    CHECK(after.error() == errc::buffer_suspect);
                    CHECK(after.error().message() ==
                          "plan summing: the state sum may have been half-written when a context was lost; decide with "
                          "plan::async_revive");
                    // Another loss changes nothing about that.
                    f.lose();
                    CHECK(f.add(p, 1).error() == errc::buffer_suspect);
                    REQUIRE(await(f.io, p.async_revive()));
                    CHECK_FALSE(p.suspect());
                    CHECK(f.add(p, 1).value() == 102);
                }
                // Decided once; a loss without a reason for doubt keeps the content.
                const float last = f.add(p, 1).value();
                f.lose();
                CHECK(f.add(p, 1).value() == last + 1);
            }
}

TEST_CASE("a worker that cannot map a state refuses its runs, and maps it after async_revive" *
          doctest::skip(test::checks_objects))
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
        CAPTURE(to_string(rule));
        fixture f(options(1));
        const plan p = f.load(summing(durable{rule}));
        CHECK(f.add(p, 1).value() == 101);
        std::vector<int> standby;
        test::run_until(f.io, [&] { return (standby = test::ready_besides(f.process())).size() == 1; });
        // It cannot receive descriptors.
        rlimit none{}, usual{};
        REQUIRE(::prlimit(standby[0], RLIMIT_NOFILE, nullptr, &usual) == 0);
        none.rlim_max = usual.rlim_max;
        REQUIRE(::prlimit(standby[0], RLIMIT_NOFILE, &none, nullptr) == 0);
        f.lose();
        CHECK(f.process() == standby[0]);
        CHECK(f.add(p, 1).error() == errc::out_of_memory);
        CHECK_FALSE(p.suspect());
        REQUIRE(await(f.io, p.async_revive()));
        CHECK(f.add(p, 1).error() == errc::out_of_memory);
        REQUIRE(::prlimit(standby[0], RLIMIT_NOFILE, &usual, nullptr) == 0);
        REQUIRE(await(f.io, p.async_revive()));
        const auto after = f.add(p, 1);
        REQUIRE_MESSAGE(after, after.error().message());
        CHECK(after.value() == 102);
    }
}

TEST_CASE("runs that wait for a plan that becomes suspect get the error")
{
    fault_injector faults;
    auto o = options(0, &faults);
    o.restart.initial_backoff = o.restart.max_backoff = 200ms;
    fixture f(o);
    const plan p = f.load(summing(durable{suspect_rule::fail}));
    faults.poison();
    CHECK(f.run(memory::fill<float>{f.alloc<float>(1), 0.0f}) == errc::context_lost);
    CHECK(f.add(p, 1).error() == errc::buffer_suspect);
    // A plan that is loaded anew has a state of its own.
    const plan q = f.load(summing(durable{suspect_rule::fail}));
    CHECK(f.add(q, 1).value() == 101);
}

TEST_CASE("plans of a set share a durable state")
{
    fault_injector faults;
    fixture f(options(0, &faults));
    plan_set_builder set("pair");
    const auto sum = set.state<float>(n, durable{suspect_rule::fail}, "sum");
    auto& adding = set.plan("adding");
    const auto x = adding.input<float>(n);
    adding.add(blas::axpy<float>{.x = x, .y = sum, .n = n, .alpha = 1});
    auto& reading = set.plan("reading");
    const auto y = reading.output<float>(n);
    reading.add(memory::copy<float>{sum, y});
    auto made = await(f.io, f.gpu.async_load(set.finish().value()));
    REQUIRE_MESSAGE(made, made.error().message());
    const plan add = made.value()["adding"], read = made.value()["reading"];
    const values ones(n, 1.0f);
    values got(n);
    REQUIRE(await(f.io, add.async_run(from(ones))));
    CHECK(held() == 1);
    CHECK(f.stats().memory.shared == n * sizeof(float));
    f.lose();
    REQUIRE(await(f.io, read.async_run(to(got))));
    CHECK(got == ones);
    f.fault(faults);
    CHECK(await(f.io, add.async_run(from(ones))).error() == errc::buffer_suspect);
    CHECK(await(f.io, read.async_run(to(got))).error() == errc::buffer_suspect);
    // The state is decided about once.
    REQUIRE(await(f.io, read.async_revive()));
    CHECK_FALSE(add.suspect());
    REQUIRE(await(f.io, add.async_run(from(ones))));
    REQUIRE(await(f.io, read.async_run(to(got))));
    CHECK(got == values(n, 2.0f));
}

TEST_CASE("the memory is counted once, and freed with the plan")
{
    fixture f(options(1));
    plan p = f.load(summing(durable{}));
    CHECK(held() == 1);
    CHECK(f.stats().memory.shared == n * sizeof(float));
    f.lose();
    CHECK(f.add(p, 1).value() == 101);
    CHECK(held() == 1);
    CHECK(f.stats().memory.shared == n * sizeof(float));
    REQUIRE(await(f.io, p.async_unload()));
    CHECK(held() == 0);
    CHECK(f.stats().memory.shared == 0);
}

TEST_CASE("a device whose memory cannot outlive it does not load the plan")
{
    test::device_fixture here(test::pool_options());
    const auto refused = await(here.io, here.gpu.async_load(summing(durable{})));
    CHECK(refused.error() == errc::unsupported_op);
    CHECK(refused.error().message() == "async_load: the state sum is durable, and the device is in this process, where "
                                       "memory ends with its context; use isolation::worker");
}

TEST_SUITE_END();

} // namespace test_integration_durable_states
