#include "isolated.hpp"
#include "support/example_plans.hpp"

#include <coaccel/core/trace.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>

namespace test_integration_traces {
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::isolated_fixture;
using test::numbers;

std::vector<trace_event> events_of(const trace_buffer& b, trace_kind kind)
{
    std::vector<trace_event> found;
    std::ranges::copy_if(b.snapshot().events, std::back_inserter(found),
                         [kind](const trace_event& e) { return e.kind == kind; });
    return found;
}

TEST_SUITE_BEGIN("isolated traces");

TEST_CASE("a worker measures the chosen share of the runs, whether their arguments are small or large")
{
    const auto buffer = trace_buffer::create(256);
    auto options = test::isolated_options();
    options.trace = buffer.get();
    options.host.timed_runs = 2;
    isolated_fixture f(options);
    // The arguments of the second are copied by ops of their own.
    for (const std::size_t count : {std::size_t(8), std::size_t(300'000)}) {
        const auto measured = events_of(*buffer, trace_kind::measured).size();
        const auto p =
            await(f.io, f.gpu.async_load(test::axpy_plan(count), plan_options{.instances = 1, .initial = 1}));
        REQUIRE(p);
        const auto x = numbers(count);
        std::vector<float> y(count);
        for (int i = 0; i < 4; ++i)
            REQUIRE(await(f.io, p.value().async_run(from(x), to(y))));
        CHECK(y.back() == x.back() + 6);
        CHECK(events_of(*buffer, trace_kind::measured).size() == measured + 2);
    }
    const auto runs = events_of(*buffer, trace_kind::run);
    CHECK(runs.size() == 8);
    for (const auto& m : events_of(*buffer, trace_kind::measured)) {
        CHECK(m.duration > 0ns);
        CHECK(std::ranges::any_of(runs, [&](const trace_event& r) {
            return r.begin + r.duration == m.begin + m.duration && m.duration <= r.duration;
        }));
    }
}

TEST_CASE("a worker that is killed is a fault from outside, and the time without one is shown")
{
    const auto buffer = trace_buffer::create(256);
    auto options = test::isolated_options();
    options.trace = buffer.get();
    isolated_fixture f(options);
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.watch_generation().get() == 2; });
    const auto faults = events_of(*buffer, trace_kind::fault);
    REQUIRE(faults.size() == 1);
    CHECK(buffer->snapshot().texts.at(faults[0].text).starts_with("outside: "));
    const auto restarts = events_of(*buffer, trace_kind::restart);
    REQUIRE(restarts.size() == 2);
    CHECK(restarts[1].value == 2);
    CHECK(restarts[1].begin == faults[0].begin);
    CHECK(restarts[1].duration > 0ns);
}

TEST_SUITE_END();

} // namespace
} // namespace test_integration_traces
