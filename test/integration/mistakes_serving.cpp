#include "durable_fixture.hpp"
#include "mistakes.hpp"
#include "poison_fixture.hpp"

#include <coaccel/ops/plugin.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>
#include <coaccel/serve/function_batcher.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace test_integration_mistakes_serving {
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using serve::batch_model;
using serve::dynamic_batcher;
using test::await;
using test::collection;
using lookups = serve::function_batcher<int, int>;

/// A plan for this many rows, whose input and output have `elements`.
serve::batch_plan score(std::uint32_t rows, std::size_t elements)
{
    plan_builder b("score" + std::to_string(rows));
    const auto x = b.input<float>(elements, "x");
    const auto y = b.output<float>(elements, "y");
    b.add(memory::copy<float>{.src = x, .dst = y});
    return {rows, b.finish().value()};
}

void models(collection& c)
{
    c.add(batch_model::create({score(8, 100)}));
    c.add(batch_model::create({score(8, 128), score(8, 128)}));
    c.add(batch_model::create({score(1, 16), score(8, 256)}));
}

void plans(collection& c)
{
    test::device_fixture f(test::pool_options());
    const std::vector devices{f.gpu};
    const std::vector models{batch_model::create({score(1, 16), score(8, 128)}).value()};
    serve::batcher_options how;
    how.name = "score";
    const auto create = [&](std::vector<device> on, const serve::batcher_options& o) {
        return await(f.io, dynamic_batcher::async_create(f.io.get_executor(), std::move(on), models, o));
    };
    c.add(create({}, how));
    auto too_large = how;
    too_large.max_rows = 64;
    c.add(create(devices, too_large));

    const auto made = create(devices, how);
    REQUIRE(made);
    const dynamic_batcher& scores = made.value();
    const std::vector<float> part(12), row(16), two_rows(32), nine_rows(144);
    std::vector<float> y(16), all(144);
    c.add(await(f.io, scores.async_run(from(part), to(y))));
    c.add(await(f.io, scores.async_run(from(two_rows), to(y))));
    c.add(await(f.io, scores.async_run(from(nine_rows), to(all))));
    c.add(await(f.io, scores.async_run(from(row))));
    c.add(await(f.io, scores.with(within(-1s)).async_run(from(row), to(y))));
    // Completes on a thread of the system executor.
    c.add(dynamic_batcher().async_run(from(row), to(y))(asio::use_future).get());
    REQUIRE(await(f.io, scores.async_shutdown(shutdown::drain)));
    c.add(await(f.io, scores.async_run(from(row), to(y))));
}

asio::awaitable<result<std::vector<int>>> first_only(std::span<const int> keys)
{
    co_return std::vector<int>{keys.front()};
}

asio::awaitable<result<std::vector<int>>> throws(std::span<const int>)
{
    throw std::runtime_error("no connection to the database");
    co_return std::vector<int>();
}

asio::awaitable<result<std::vector<int>>> never_ends(std::span<const int>)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await timer.async_wait(asio::use_awaitable);
    co_return std::vector<int>();
}

/// The first outcome of three calls at once, and the last one.
template <class F>
void call_three(collection& c, serve::batcher_options how, F f)
{
    asio::io_context io{1};
    how.name = "keys";
    how.restart.max_restarts = 0;
    const lookups keys = lookups::create(io.get_executor(), how, f).value();
    const exec_options at_once{.when_full = when_full::fail};
    std::optional<error_code> first, last;
    keys.async_call(1, [&](error_code ec, int) { first = ec; });
    keys.async_call(2, [](error_code, int) {});
    keys.async_call(3, at_once, [&](error_code ec, int) { last = ec; });
    test::run_until(io, [&] { return first && last; });
    c.add(*first);
    c.add(*last);
}

void functions(collection& c)
{
    serve::batcher_options one_by_one;
    one_by_one.max_rows = one_by_one.max_in_flight = 1;
    one_by_one.max_queued = {1, 1, 1};
    one_by_one.run_limit = 1ms;
    call_three(c, one_by_one, never_ends);
    serve::batcher_options together;
    together.max_rows = 3;
    together.delay = serve::delay_rule::fixed;
    together.max_delay = 1h;
    call_three(c, together, first_only);
    call_three(c, together, throws);
}

void durable_memory(collection& c)
{
    test::device_fixture here(test::pool_options());
    c.add(await(here.io, here.gpu.async_alloc_durable<float>(1000)));

    fault_injector faults;
    auto o = test::durable_workers::options();
    o.host.injector = &faults;
    test::durable_workers::fixture f(o);
    const auto counter = f.durable<float>(1000);
    f.fault(faults);
    c.add(f.exec(blas::scal<float>{.x = counter, .n = 1000, .alpha = 2}));
}

void workers(collection& c)
{
    asio::io_context io{1};
    auto here = test::pool_options();
    here.standby = 1;
    c.add(await(io, device::async_create(io.get_executor(), here)));
    auto hasty = test::isolated_options();
    hasty.worker.heartbeat = 10ms;
    c.add(await(io, device::async_create(io.get_executor(), hasty)));

    test::poison_fixture f;
    c.add(await(f.io, f.gpu.async_alloc_managed<float>(4)));
    const auto x = f.upload(test::numbers(4));
    c.add(f.exec(plugin::call("smooth", in(x))));
    c.add(f.exec(plugin::call("twice", in(x))));
    c.add(f.exec(plugin::call("twice", plugin::version{2}, in(x))));

    const plan_options overdue{.suspect_after = {.factor = 4}};
    c.add(await(f.io, f.gpu.async_load(test::poisonable_plan(), overdue)));

    const auto poisonable = f.load({.poison_limit = 1});
    for (int i = 0; i < 2; ++i)
        c.add(f.outcome(f.start(poisonable, test::poison::abort)));
    c.add(f.outcome(f.start(poisonable)));

    const test::fatal_loads fatal;
    test::poison_fixture g;
    CHECK_FALSE(await(g.io, g.gpu.async_load(test::fatal_plan())));
    c.add(await(g.io, g.gpu.async_load(test::fatal_plan())));
}

} // namespace
} // namespace test_integration_mistakes_serving

namespace test {

void add_serving_mistakes(collection& c)
{
    using namespace test_integration_mistakes_serving;
    models(c);
    plans(c);
    functions(c);
    durable_memory(c);
    workers(c);
}

} // namespace test
