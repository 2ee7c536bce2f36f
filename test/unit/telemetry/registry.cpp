#include "snapshots.hpp"
#include "support/devices.hpp"
#include "support/gate.hpp"
#include "support/tracking.hpp"

#include <coaccel/telemetry/registry.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test_telemetry_registry {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using test::await;
using test::collect;
using test::find_sample;
using test::value_of;

/// Those that a registry has by itself.
constexpr std::size_t own_families = 7;

TEST_SUITE_BEGIN("registry");

TEST_CASE("an empty registry has only its own metrics")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto all = collect(io, metrics);
    CHECK(all.families.size() == own_families);
    CHECK(all.devices.empty());
    CHECK(value_of(all, "coaccel_telemetry_collections_total") == 1);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 0);
    CHECK(value_of(all, "coaccel_telemetry_source_timeouts_total") == 0);
    CHECK(value_of(all, "coaccel_telemetry_source_errors_total") == 0);
}

TEST_CASE("the same name and labels give the same metric")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const registry copy = metrics;
    CHECK(copy == metrics);
    const auto a = metrics.add_counter("hits_total", "Hits.", {{"a", "1"}, {"b", "2"}}).value();
    const auto b = copy.add_counter("hits_total", "Hits.", {{"b", "2"}, {"a", "1"}}).value();
    const auto c = copy.add_counter("hits_total", "Hits.", {{"a", "2"}}).value();
    a.add();
    b.add(2);
    c.add(10);
    const auto g = metrics.add_gauge("level", "Level.").value();
    g.set(2);
    metrics.add_gauge("level", "Level.").value().add(0.5);
    const auto h = metrics.add_histogram("sizes", "Sizes.", {}, histogram_options::sizes()).value();
    h.observe(3);
    metrics.add_histogram("sizes", "Sizes.").value().observe(4);
    const auto all = collect(io, copy);
    CHECK(value_of(all, "hits_total", {{"a", "1"}, {"b", "2"}}) == 3);
    CHECK(value_of(all, "hits_total", {{"a", "2"}}) == 10);
    CHECK(value_of(all, "level") == 2.5);
    const auto* sizes = find_sample(all, "sizes");
    REQUIRE(sizes);
    CHECK(std::get<histogram_snapshot>(sizes->value).sum == 7);
}

TEST_CASE("a name with another type or help, and odd characters, are errors")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    CHECK(metrics.add_gauge("x", "Help."));
    CHECK(metrics.add_histogram("x", "Help.").error().message() == "telemetry: \"x\" is a gauge, not a histogram");
    CHECK(metrics.add_gauge("x", "Other.").error() == errc::invalid_argument);
    CHECK(metrics.add_counter("x y_total", "").error().message() ==
          "telemetry: the metric name \"x y_total\" has the character ' ' at position 1");
    CHECK(metrics.add_gauge("y", "", {{"a-b", ""}}).error().message() ==
          "telemetry: the label name \"a-b\" has the character '-' at position 1");
    CHECK(metrics.add_counter("coaccel_telemetry_dropped_samples_total", "").error() == errc::invalid_argument);
    CHECK(collect(io, metrics).families.size() == own_families + 1);
}

TEST_CASE("sources are asked at each collection until their registration is destroyed")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    int calls = 0;
    {
        const auto kept = metrics.add_source([&](metric_writer& out) {
            ++calls;
            out.gauge("calls", "Calls.", {{"n", "1"}}, calls);
        });
        CHECK(calls == 0);
        CHECK(value_of(collect(io, metrics), "calls", {{"n", "1"}}) == 1);
        CHECK(value_of(collect(io, metrics), "calls", {{"n", "1"}}) == 2);
    }
    CHECK_FALSE(find_sample(collect(io, metrics), "calls", {{"n", "1"}}));
    CHECK(calls == 2);
}

TEST_CASE("a registration can be moved, removed and detached")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto source = [&](const char* name) {
        return metrics.add_source([name](metric_writer& out) { out.gauge(name, "", {}, 1); });
    };
    auto a = source("a");
    auto b = source("b");
    source("c").detach();
    auto all = collect(io, metrics);
    CHECK(find_sample(all, "a"));
    CHECK(find_sample(all, "b"));
    a = std::move(b);
    all = collect(io, metrics);
    CHECK_FALSE(find_sample(all, "a"));
    CHECK(find_sample(all, "b"));
    a.remove();
    a.remove();
    all = collect(io, metrics);
    CHECK_FALSE(find_sample(all, "b"));
    CHECK(find_sample(all, "c"));
}

TEST_CASE("a registration may outlive its registry")
{
    asio::io_context io;
    registration kept;
    {
        const registry metrics(io.get_executor());
        kept = metrics.add_source([](metric_writer&) {});
    }
    kept.remove();
}

TEST_CASE("a source may destroy its own registration")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto owned = std::make_shared<int>(7);
    const std::weak_ptr<int> alive = owned;
    registration kept;
    int seen = 0;
    kept = metrics.add_source([&, owned = std::move(owned)](metric_writer& out) {
        kept.remove();
        seen = *owned;
        out.gauge("last", "", {}, 1);
    });
    CHECK(find_sample(collect(io, metrics), "last"));
    CHECK(seen == 7);
    CHECK(alive.expired());
    CHECK_FALSE(find_sample(collect(io, metrics), "last"));
}

TEST_CASE("the destructor of a registration waits for a call that is running")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    test::gate inside;
    std::atomic<bool> returned = false;
    std::optional<registration> kept = metrics.add_source([&](metric_writer&) {
        inside.pass();
        returned = true;
    });
    bool done = false;
    metrics.async_collect([&](error_code, snapshot) { done = true; });
    std::thread runner([&] { io.run(); });
    inside.wait_for(1);
    std::thread opener([&] { inside.open(); });
    kept.reset();
    CHECK(returned);
    runner.join();
    opener.join();
    CHECK(done);
}

TEST_CASE("samples that collide are dropped and counted; the earlier source wins")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto own = metrics.add_gauge("x", "Help.", {{"a", "0"}}).value();
    const auto first = metrics.add_source([](metric_writer& out) {
        out.gauge("x", "Help.", {{"a", "1"}}, 1);
        out.gauge("x", "Help.", {{"a", "0"}}, 1);
    });
    const auto second = metrics.add_source([](metric_writer& out) {
        out.gauge("x", "Help.", {{"a", "1"}}, 2);
        out.counter("x", "Help.", {{"a", "2"}}, 2);
        out.gauge("y", "", {}, 2);
        out.counter("coaccel_telemetry_dropped_samples_total", "Another help.", {}, 1000);
    });
    const auto all = collect(io, metrics);
    CHECK(value_of(all, "x", {{"a", "0"}}) == 0);
    CHECK(value_of(all, "x", {{"a", "1"}}) == 1);
    CHECK(value_of(all, "y") == 2);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 4);
    CHECK(value_of(collect(io, metrics), "coaccel_telemetry_dropped_samples_total") == 8);
}

TEST_CASE("the samples of a source that throws are missing, and it is counted")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto bad = metrics.add_source([](metric_writer& out) {
        out.gauge("half", "", {}, 1);
        throw std::runtime_error("no");
    });
    const auto good = metrics.add_source([](metric_writer& out) { out.gauge("good", "", {}, 1); });
    const auto all = collect(io, metrics);
    CHECK_FALSE(find_sample(all, "half"));
    CHECK(find_sample(all, "good"));
    CHECK(value_of(all, "coaccel_telemetry_source_errors_total") == 1);
}

TEST_CASE("an empty function is a source without samples")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto kept = metrics.add_source(nullptr);
    CHECK(collect(io, metrics).families.size() == own_families);
}

TEST_CASE("a mailbox is measured")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto box = mailbox<int>::create(io.get_executor(), 4).value();
    const auto kept = metrics.add(box.ref(), "in");
    CHECK_FALSE(box.try_send(1));
    auto all = collect(io, metrics);
    CHECK(value_of(all, "coaccel_mailbox_messages", {{"mailbox", "in"}}) == 1);
    CHECK(value_of(all, "coaccel_mailbox_capacity", {{"mailbox", "in"}}) == 4);
    CHECK(value_of(all, "coaccel_mailbox_open", {{"mailbox", "in"}}) == 1);
    box.close();
    CHECK(value_of(collect(io, metrics), "coaccel_mailbox_open", {{"mailbox", "in"}}) == 0);
}

TEST_CASE("a collection never completes in the initiating call and uses the executor and allocator of the handler")
{
    asio::io_context io, other;
    const registry metrics(io.get_executor());
    const auto source = metrics.add_source([&](metric_writer&) { CHECK(io.get_executor().running_in_this_thread()); });
    test::allocation_count count;
    bool done = false;
    metrics.async_collect(asio::bind_executor(
        other, asio::bind_allocator(test::tracking_allocator<void>(count), [&](error_code ec, const snapshot& all) {
            CHECK_FALSE(ec);
            CHECK(all.families.size() == own_families);
            CHECK(other.get_executor().running_in_this_thread());
            CHECK(count.live == 0);
            done = true;
        })));
    CHECK_FALSE(done);
    CHECK(count.allocations > 0);
    while (io.poll_one() > 0)
        CHECK_FALSE(done);
    other.run();
    CHECK(done);
}

TEST_CASE("every kind of token works")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto future = metrics.async_collect(asio::use_future);
    io.run();
    CHECK(future.get().families.size() == own_families);
    io.restart();
    const auto from_coroutine = [](registry m) -> asio::awaitable<bool> {
        const auto plain = co_await m.async_collect(asio::use_awaitable);
        const auto [ec, tuple] = co_await m.async_collect(asio::as_tuple(asio::use_awaitable));
        const auto as_default = co_await m.async_collect();
        co_return plain.families.size() == own_families && !ec && tuple.families.size() == own_families && as_default;
    };
    CHECK(test::co_run(io, from_coroutine(metrics)));
}

TEST_CASE("a collection completes although the last copy of the registry is gone")
{
    asio::io_context io;
    std::optional<registry> metrics(std::in_place, io.get_executor());
    bool done = false;
    metrics->async_collect([&](error_code ec, const snapshot&) { done = !ec; });
    metrics.reset();
    io.run();
    CHECK(done);
}

TEST_CASE("a registry outlives its execution context")
{
    std::optional<asio::io_context> io(std::in_place);
    const registry metrics(io->get_executor());
    struct flag {
        explicit flag(bool& f) : destroyed(&f) {}
        flag(flag&& o) noexcept : destroyed(std::exchange(o.destroyed, nullptr)) {}
        ~flag()
        {
            if (destroyed)
                *destroyed = true;
        }
        void operator()(error_code, const snapshot&) { FAIL("called"); }
        bool* destroyed;
    };
    bool waiting = false, later = false;
    metrics.async_collect(flag(waiting));
    io.reset();
    CHECK(waiting);
    metrics.async_collect(flag(later));
    CHECK(later);
    CHECK(metrics.add_gauge("x", ""));
}

TEST_CASE("threads add, observe, collect and remove at the same time")
{
    asio::thread_pool pool(2);
    const registry metrics(pool.get_executor());
    std::vector<std::thread> threads;
    std::atomic<int> collected = 0;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            const labels with{{"thread", std::to_string(t)}};
            for (int i = 0; i < 100; ++i) {
                metrics.add_counter("n_total", "N.", with).value().add();
                const auto kept =
                    metrics.add_source([&](metric_writer& out) { out.gauge("source", "Source.", with, 1); });
                const auto all = metrics.async_collect(asio::use_future).get();
                collected += find_sample(all, "source", with) ? 1 : 0;
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(collected == 300);
    const auto all = metrics.async_collect(asio::use_future).get();
    for (const char* t : {"0", "1", "2"})
        CHECK(value_of(all, "n_total", {{"thread", t}}) == 100);
    CHECK(value_of(all, "coaccel_telemetry_dropped_samples_total") == 0);
}

TEST_CASE("names of the library are reserved, except to read its own metrics")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto refused = metrics.add_counter("coaccel_mine_total", "");
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(refused.error().message() ==
          "telemetry: the metric name \"coaccel_mine_total\" begins with \"coaccel_\", which is reserved");
    CHECK_FALSE(metrics.add_gauge("coaccel_mine", ""));
    CHECK_FALSE(metrics.add_histogram("coaccel_mine", ""));
    CHECK(metrics.add_gauge("coaccelerate", ""));
    CHECK(metrics.add_counter("coaccel_telemetry_collections_total", "Collections of all metrics."));
}

TEST_CASE("a registration that is assigned to itself keeps its source")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto kept = metrics.add_source([](metric_writer& out) { out.gauge("x", "", {}, 1); });
    auto& same = kept;
    kept = std::move(same);
    CHECK(test::value_of(test::await(io, metrics.async_collect()).value(), "x") == 1);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_registry
