#include "support/device_fixture.hpp"
#include "support/gate.hpp"
#include "support/numbers.hpp"

#include <coaccel/host/fault_injector.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <optional>

namespace test_device_graph {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::numbers;

constexpr std::size_t n = 8;

struct graph_fixture : test::device_fixture {
    explicit graph_fixture(device_options o = test::pool_options()) : device_fixture(o)
    {
        x = upload(numbers(n));
        y = upload(std::vector<float>(n));
    }

    /// y = y + x
    auto adding() const { return seq(blas::axpy<float>{.x = x, .y = y, .n = n, .alpha = 1}); }

    graph record()
    {
        auto made = await(io, gpu.async_record(adding()));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    std::uint64_t live() { return await(io, gpu.async_stats()).value().live_buffers; }

    /// What y is after some runs.
    static std::vector<float> after(int runs)
    {
        auto made = numbers(n);
        for (float& e : made)
            e *= static_cast<float>(runs);
        return made;
    }

    buffer<float> x, y;
};

TEST_SUITE_BEGIN("graph");

TEST_CASE_FIXTURE(graph_fixture, "a graph that is released leaves nothing, and its later runs are refused")
{
    const auto before = live();
    const graph g = record();
    const graph copy = g;
    CHECK(g == copy);
    CHECK(live() == before + 1);
    REQUIRE(await(io, g.async_release()));
    CHECK(live() == before);
    CHECK(await(io, copy.async_release()));
    const auto refused = await(io, gpu.async_exec(copy));
    CHECK(refused.error() == errc::invalid_argument);
    CHECK(refused.error().message() == "graph 1: it has been released");
}

TEST_CASE_FIXTURE(graph_fixture, "a graph that is dropped leaves nothing, after its runs")
{
    const auto before = live();
    constexpr int runs = 20;
    test::gate closed;
    gpu.async_submit(inout(x), test::gate_op(&closed), [](error_code ec) { CHECK_FALSE(ec); });
    int ended = 0;
    {
        const graph g = record();
        for (int i = 0; i < runs; ++i)
            gpu.async_exec(g, [&](error_code ec) {
                CHECK_FALSE(ec);
                ++ended;
            });
    }
    CHECK(live() == before + 1);
    closed.open();
    test::run_until(io, [&] { return ended == runs; });
    CHECK(download(y) == after(runs));
    test::run_until(io, [&] { return live() == before; });
}

TEST_CASE_FIXTURE(graph_fixture, "a graph keeps its buffers, and they go back when the last graph is gone")
{
    const auto before = live();
    graph first = record();
    graph second = record();
    const auto gone = y.ref();
    x.reset();
    y.reset();
    REQUIRE(await(io, gpu.async_exec(first)));
    // Refs stay valid too.
    CHECK(download(gone) == after(1));
    CHECK(live() == before + 2);
    REQUIRE(await(io, first.async_release()));
    CHECK(live() == before + 1);
    REQUIRE(await(io, gpu.async_exec(second)));
    CHECK(download(gone) == after(2));
    second = {};
    test::run_until(io, [&] { return live() == before - 2; });
    CHECK(await(io, gpu.async_download(gone)).error() == errc::released_ref);
}

TEST_CASE_FIXTURE(graph_fixture, "a buffer that was released before it was recorded is refused")
{
    const auto before = live();
    const auto ops = adding();
    y.reset();
    CHECK(await(io, gpu.async_record(ops)).error() == errc::released_ref);
    CHECK(live() == before - 1);
}

TEST_CASE_FIXTURE(graph_fixture, "the buffer of an optional operand belongs to the graph, and its release is named")
{
    const auto bias = upload(std::vector<float>{100, 200});
    auto gone = upload(std::vector<float>{1, 2});
    const blas::matmul<float> plain{
        .a = x.subspan(0, 4), .b = x.subspan(4, 4), .d = y.subspan(0, 4), .m = 2, .n = 2, .k = 2};
    auto biased = plain;
    biased.bias = bias;
    const auto recorded = await(io, gpu.async_record(seq(plain, biased)));
    REQUIRE_MESSAGE(recorded, recorded.error().message());
    REQUIRE(await(io, gpu.async_exec(recorded.value())));
    // The columns of x are 1 2, 3 4, 5 6 and 7 8.
    CHECK(download(y) == std::vector<float>{123, 234, 131, 246, 0, 0, 0, 0});
    biased.bias = gone;
    gone.reset();
    const auto refused = await(io, gpu.async_record(seq(plain, biased)));
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == errc::released_ref);
    CHECK(refused.error().message() ==
          "graph 2: the buffer of bias of op 2 (blas.matmul<f32 from f32>) has been released");
}

TEST_CASE_FIXTURE(graph_fixture, "a graph keeps its device alive")
{
    const graph g = record();
    gpu = {};
    REQUIRE(await(io, g.get_device().async_exec(g)));
    CHECK(await(io, g.get_device().async_download(y)).value() == after(1));
}

TEST_CASE_FIXTURE(graph_fixture, "a graph waits for the ops before it on its buffers, and others wait for it")
{
    const graph g = record();
    test::gate closed;
    std::vector<float> read(n);
    int ended = 0;
    const auto note = [&](error_code ec) {
        CHECK_FALSE(ec);
        ++ended;
    };
    gpu.async_submit(inout(x), test::gate_op(&closed), note);
    gpu.async_exec(g, note);
    gpu.async_read(y, read, note);
    // Only an op on other memory can end.
    const auto z = upload(numbers(n));
    CHECK(download(z) == numbers(n));
    CHECK(ended == 0);
    closed.open();
    test::run_until(io, [&] { return ended == 3; });
    CHECK(read == after(1));
}

TEST_CASE_FIXTURE(graph_fixture, "a graph of another device and an empty graph are refused")
{
    const graph g = record();
    const device other = test::make_device(io);
    const auto refused = await(io, other.async_exec(g));
    CHECK(refused.error() == errc::wrong_device);
    CHECK(refused.error().message() == "graph 1: it belongs to another device");
    const auto empty = await(io, gpu.async_exec(graph()));
    CHECK(empty.error() == errc::invalid_argument);
    CHECK(empty.error().message() == "graph: it is empty");
    CHECK(await(io, other.async_record(adding())).error() == errc::wrong_device);
    CHECK_FALSE(graph());
    // Without a device, the handlers run on the system executor.
    const auto outcome = [](auto start) {
        std::promise<error_code> made;
        start([&made](error_code ec, auto&&...) { made.set_value(ec); });
        return made.get_future().get();
    };
    CHECK(outcome([&](auto h) { device().async_exec(g, h); }) == errc::invalid_argument);
    CHECK(outcome([](auto h) { graph().async_release(h); }) == errc::invalid_argument);
    REQUIRE(await(io, gpu.async_exec(g)));
    CHECK(download(y) == after(1));
}

TEST_CASE_FIXTURE(graph_fixture, "runs have deadlines and can be cancelled")
{
    const graph g = record();
    test::gate closed;
    gpu.async_submit(inout(x), test::gate_op(&closed), [](error_code ec) { CHECK_FALSE(ec); });
    CHECK(await(io, gpu.with(within(-1ms)).async_exec(g)).error() == errc::deadline_exceeded);
    // Its caller is answered at once; the run itself ends later.
    CHECK(await(io, gpu.with(within(1ms)).async_exec(g)).error() == errc::deadline_exceeded);
    asio::cancellation_signal stop;
    std::optional<error_code> ended;
    gpu.async_exec(g, asio::bind_cancellation_slot(stop.slot(), [&](error_code ec) { ended = ec; }));
    stop.emit(asio::cancellation_type::terminal);
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK(*ended == asio::error::operation_aborted);
    closed.open();
    REQUIRE(await(io, gpu.with(within(10s)).async_exec(g)));
    const auto before = live();
    REQUIRE(await(io, g.async_release()));
    CHECK(live() == before - 1);
    CHECK(download(y)[0] >= 2);
}

TEST_CASE("runs that wait in the queue are cancelled or end with the device, and their graph goes")
{
    auto options = test::pool_options();
    options.queue.max_in_flight = 1;
    graph_fixture f(options);
    const auto before = f.live();
    test::gate closed;
    std::optional<error_code> aborted;
    int ended = 0;
    {
        const graph g = f.record();
        f.gpu.async_submit(inout(f.x), test::gate_op(&closed), [](error_code ec) { CHECK_FALSE(ec); });
        asio::cancellation_signal stop;
        f.gpu.async_exec(g, asio::bind_cancellation_slot(stop.slot(), [&](error_code ec) { aborted = ec; }));
        f.gpu.async_exec(g, [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
        stop.emit(asio::cancellation_type::total);
        test::run_until(f.io, [&] { return aborted.has_value(); });
        CHECK(*aborted == asio::error::operation_aborted);
    }
    closed.open();
    test::run_until(f.io, [&] { return ended == 1; });
    CHECK(f.download(f.y) == f.after(1));
    test::run_until(f.io, [&] { return f.live() == before; });
}

TEST_CASE_FIXTURE(graph_fixture, "a cancelled recording leaves nothing")
{
    const auto before = live();
    asio::cancellation_signal stop;
    std::optional<error_code> ended;
    gpu.async_record(adding(),
                     asio::bind_cancellation_slot(stop.slot(), [&](error_code ec, const graph&) { ended = ec; }));
    stop.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return ended.has_value(); });
    CHECK((!*ended || *ended == asio::error::operation_aborted));
    test::run_until(io, [&] { return live() == before; });
    // Its buffers are not held any more.
    y.reset();
    test::run_until(io, [&] { return live() == before - 1; });
}

TEST_CASE("a recording for which there is no memory fails, and nothing is left")
{
    auto options = test::pool_options();
    options.host.memory_limit = 1 << 20;
    graph_fixture f(options);
    const auto large = f.alloc<float>(200'000);
    const auto before = f.live();
    CHECK(await(f.io, f.gpu.async_record(seq(memory::fill<float>{large, 1}))).error() == errc::out_of_memory);
    CHECK(f.live() == before);
    const graph g = f.record();
    REQUIRE(await(f.io, f.gpu.async_exec(g)));
}

TEST_CASE("after a fault a graph is stale, and every call ends")
{
    for (int round = 0; round < 10; ++round) {
        fault_injector injector;
        auto options = test::pool_options();
        options.host.injector = &injector;
        options.restart.max_restarts = 100;
        graph_fixture f(options);
        const graph g = f.record();
        constexpr int runs = 30;
        int ended = 0;
        for (int i = 0; i < runs; ++i) {
            // Runs are never repeated, because they use old memory.
            f.gpu.with({.retry = retry::idempotent}).async_exec(g, [&](error_code ec) {
                ++ended;
                CHECK((!ec || is_context_lost(ec) || ec == errc::stale_ref));
            });
            if (i == runs / 2)
                injector.poison();
        }
        f.gpu.async_record(f.adding(), [&](error_code ec, const graph&) {
            ++ended;
            CHECK((!ec || is_context_lost(ec) || ec == errc::stale_ref));
        });
        test::run_until(f.io, [&] { return ended == runs + 1; });
        test::run_until(f.io, [&] { return f.gpu.status().generation == 2; });
        CHECK(await(f.io, f.gpu.async_exec(g)).error() == errc::stale_ref);
        const auto y = f.upload(std::vector<float>(n));
        const auto next = await(f.io, f.gpu.async_record(seq(memory::fill<float>{y, 3})));
        REQUIRE(next);
        REQUIRE(await(f.io, f.gpu.async_exec(next.value())));
        CHECK(f.download(y) == std::vector<float>(n, 3));
    }
}

TEST_CASE_FIXTURE(graph_fixture, "a device that shuts down ends runs and recordings")
{
    const graph g = record();
    std::vector<error_code> ended;
    const auto note = [&](error_code ec) { ended.push_back(ec); };
    gpu.async_exec(g, note);
    gpu.async_record(adding(), [&](error_code ec, const graph&) { ended.push_back(ec); });
    gpu.async_shutdown(note);
    test::run_until(io, [&] { return ended.size() == 3; });
    CHECK(await(io, gpu.async_exec(g)).error() == errc::device_stopped);
    CHECK(await(io, gpu.async_record(adding())).error() == errc::device_stopped);
    CHECK(await(io, g.async_release()));
}

TEST_CASE("an io_context may be destroyed with recordings and runs on the way")
{
    graph g;
    {
        asio::io_context io;
        device gpu = test::make_device(io);
        auto y = await(io, gpu.async_alloc<float>(n)).value();
        g = await(io, gpu.async_record(seq(memory::fill<float>{y, 1}))).value();
        gpu.async_exec(g, [](error_code) { FAIL("the handler must not be called"); });
        gpu.async_record(seq(memory::fill<float>{y, 1}),
                         [](error_code, const graph&) { FAIL("the handler must not be called"); });
        g.async_release([](error_code) { FAIL("the handler must not be called"); });
    }
    g = {};
}

TEST_CASE_FIXTURE(graph_fixture, "the statistics have one row for all graphs")
{
    const graph g = record();
    REQUIRE(await(io, gpu.async_exec(g)));
    const auto stats = await(io, gpu.async_stats()).value();
    CHECK(std::ranges::any_of(stats.latencies, [](const auto& row) { return row.op == "graph.run"; }));
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_graph
