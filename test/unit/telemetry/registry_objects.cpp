#include "jit/image.hpp"
#include "jit/registry.hpp"
#include "snapshots.hpp"
#include "support/devices.hpp"

#include <coaccel/actor/actor.hpp>
#include <coaccel/actor/supervisor.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace test_telemetry_registry_objects {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using test::await;
using test::collect;
using test::find_sample;
using test::value_of;

/// Fails with messages below zero.
struct picky {
    asio::awaitable<error_code> operator()(int message) const
    {
        co_return message < 0 ? make_error_code(errc::invalid_argument) : error_code();
    }
};

std::shared_ptr<actor<int>> make_actor(asio::io_context& io)
{
    return actor<int>::create(io.get_executor(), 8, [] { return picky{}; }).value();
}

restart_policy impatient(int most)
{
    restart_policy p;
    p.max_restarts = most;
    p.initial_backoff = std::chrono::milliseconds(1);
    return p;
}

TEST_SUITE_BEGIN("registry objects");

TEST_CASE("an actor and its supervisor are measured")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto worker = make_actor(io);
    auto boss = supervisor::create(io.get_executor(), impatient(1), {worker}).value();
    auto first = metrics.add(worker, "worker").value();
    auto second = metrics.add(boss, "boss").value();
    const labels a{{"actor", "worker"}}, b{{"mailbox", "worker"}}, s{{"supervisor", "boss"}};
    auto all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_actor_messages_total", a) == 0);
    CHECK(value_of(all, "coaccel_actor_starts_total", a) == 0);
    CHECK(value_of(all, "coaccel_mailbox_capacity", b) == 8);
    CHECK(value_of(all, "coaccel_supervisor_running", s) == 0);
    CHECK(value_of(all, "coaccel_supervisor_children", s) == 1);

    std::optional<error_code> ended;
    boss->async_run([&](error_code ec) { ended = ec; });
    for (int message : {1, 2, -1, 3})
        CHECK_FALSE(worker->ref().try_send(std::move(message)));
    test::run_until(io, [&] { return worker->stats().messages == 4; });
    all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_actor_messages_total", a) == 4);
    CHECK(value_of(all, "coaccel_actor_failures_total", a) == 1);
    CHECK(value_of(all, "coaccel_actor_starts_total", a) == 2);
    CHECK(value_of(all, "coaccel_supervisor_running", s) == 1);
    CHECK(value_of(all, "coaccel_supervisor_failures_total", s) == 1);
    CHECK(value_of(all, "coaccel_supervisor_restarts_total", s) == 1);
    CHECK(value_of(all, "coaccel_supervisor_escalations_total", s) == 0);
    CHECK(value_of(all, "coaccel_mailbox_open", b) == 1);

    // The second failure is one too many.
    CHECK_FALSE(worker->ref().try_send(-1));
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK(*ended == errc::invalid_argument);
    all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_supervisor_running", s) == 0);
    CHECK(value_of(all, "coaccel_supervisor_failures_total", s) == 2);
    CHECK(value_of(all, "coaccel_supervisor_restarts_total", s) == 1);
    CHECK(value_of(all, "coaccel_supervisor_escalations_total", s) == 1);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 0);

    // A second run begins with starts that are no restarts.
    ended.reset();
    boss->async_run([&](error_code ec) { ended = ec; });
    CHECK_FALSE(await(io, boss->async_stop()).has_error());
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK(boss->stats().restarts == 1);
}

TEST_CASE("the registry does not keep actors, supervisors and trace buffers")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto worker = make_actor(io);
    auto boss = supervisor::create(io.get_executor(), impatient(1)).value();
    auto events = trace_buffer::create(4);
    const auto first = metrics.add(worker, "x").value();
    const auto second = metrics.add(boss, "x").value();
    const auto third = metrics.add(events, "x").value();
    CHECK(worker.use_count() == 1);
    CHECK(boss.use_count() == 1);
    CHECK(events.use_count() == 1);
    CHECK(find_sample(collect(io, metrics), "coaccel_actor_messages_total", {{"actor", "x"}}));
    worker.reset();
    boss.reset();
    events.reset();
    const auto all = collect(io, metrics);
    CHECK_FALSE(find_sample(all, "coaccel_actor_messages_total", {{"actor", "x"}}));
    CHECK_FALSE(find_sample(all, "coaccel_mailbox_open", {{"mailbox", "x"}}));
    CHECK_FALSE(find_sample(all, "coaccel_supervisor_running", {{"supervisor", "x"}}));
    CHECK_FALSE(find_sample(all, "coaccel_trace_events_total", {{"trace", "x"}}));
    CHECK(value_of(all, "coaccel_telemetry_source_errors_total") == 0);
}

TEST_CASE("null pointers are refused")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    CHECK(metrics.add(std::shared_ptr<actor<int>>(), "a").error().message() ==
          "registry.add: the actor \"a\" is empty");
    CHECK(metrics.add(std::shared_ptr<supervisor>(), "b").error().message() ==
          "registry.add: the supervisor \"b\" is empty");
    CHECK(metrics.add(std::shared_ptr<trace_buffer>(), "c").error() == errc::invalid_argument);
}

TEST_CASE("a trace buffer is measured")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto events = trace_buffer::create(4);
    const auto kept = metrics.add(events, "main").value();
    for (int i = 0; i < 6; ++i)
        events->add({});
    const auto all = collect(io, metrics);
    const labels mine{{"trace", "main"}};
    CHECK(value_of(all, "coaccel_trace_capacity", mine) == 4);
    CHECK(value_of(all, "coaccel_trace_events_total", mine) == 6);
    CHECK(value_of(all, "coaccel_trace_lost_events_total", mine) == 2);
}

TEST_CASE("the kernels and the contents of plans of the process are measured")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto before = collect(io, metrics);
    const auto grown = [&](const char* name, const labels& with = {}) {
        return value_of(collect(io, metrics), name, with) - value_of(before, name, with);
    };
    {
        const auto compiled = jit::register_image(std::make_shared<jit::image>());
        auto cached = std::make_shared<jit::image>();
        cached->from_cache = true;
        const auto found = jit::register_image(std::move(cached));
        const auto again = jit::register_image(std::make_shared<jit::image>());
        CHECK(grown("coaccel_jit_kernels") == 3);
    }
    CHECK(grown("coaccel_jit_kernels") == 0);
    CHECK(grown("coaccel_jit_kernels_made_total", {{"from", "compiler"}}) == 2);
    CHECK(grown("coaccel_jit_kernels_made_total", {{"from", "cache"}}) == 1);
    {
        const std::vector<float> numbers(64, 1.5f);
        plan_builder b("constant");
        const auto x = b.constant<float>(numbers);
        const auto y = b.output<float>(64);
        b.add(memory::copy<float>{.src = x, .dst = y});
        const auto made = b.finish().value();
        CHECK(grown("coaccel_plan_contents") == 1);
    }
    CHECK(grown("coaccel_plan_contents") == 0);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_registry_objects
