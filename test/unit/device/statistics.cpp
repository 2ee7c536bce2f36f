#include "support/devices.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace test_device_statistics {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::make_device;

std::map<std::string, op_latency> rows_of(const device_stats& s)
{
    std::map<std::string, op_latency> rows;
    for (const auto& l : s.latencies) {
        CHECK_FALSE(rows.contains(l.op));
        rows[l.op] = l;
    }
    return rows;
}

TEST_SUITE_BEGIN("device statistics");

TEST_CASE("each op is counted by its outcome")
{
    asio::io_context io;
    auto o = test::pool_options();
    o.queue.max_in_flight = 1;
    auto gpu = make_device(io, o);
    auto x = await(io, gpu.async_alloc<float>(4, memory_init::zero)).value();
    test::gate gate;
    gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    test::run_until(io, [&] { return gate.reached(1); });

    const memory::fill<float> fill{.dst = x, .value = 1.0f};
    asio::cancellation_signal cancel;
    error_code cancelled, expired;
    gpu.async_exec(fill, asio::bind_cancellation_slot(cancel.slot(), [&](error_code ec) { cancelled = ec; }));
    gpu.with(within(0ms)).async_exec(fill, [&](error_code ec) { expired = ec; });
    test::run_until(io, [&] { return bool(expired); });
    cancel.emit(asio::cancellation_type::total);
    test::run_until(io, [&] { return bool(cancelled); });
    CHECK(expired == errc::deadline_exceeded);
    CHECK(cancelled == asio::error::operation_aborted);
    gate.open();
    CHECK_FALSE(await(io, gpu.async_exec(memory::fill<float>{})));
    CHECK(await(io, gpu.async_exec(fill)));

    const auto s = await(io, gpu.async_stats()).value();
    // The allocation, the function at the gate, the last fill.
    CHECK(s.completed == 3);
    CHECK(s.failed == 1);
    CHECK(s.cancelled == 1);
    CHECK(s.expired == 1);
    CHECK(s.in_flight == 0);
    CHECK(s.queued == 0);
}

TEST_CASE("a seq has its own row, named after its ops")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(4)).value();
    auto y = await(io, gpu.async_alloc<float>(4)).value();
    const memory::fill<float> fill{.dst = x, .value = 1.0f};
    const memory::copy<float> copy{.src = x, .dst = y};
    CHECK(await(io, gpu.async_exec(fill)));
    CHECK(await(io, gpu.async_exec(seq(fill))));
    CHECK(await(io, gpu.async_exec(seq(fill, copy))));
    CHECK(await(io, gpu.async_exec(seq(fill, copy))));
    CHECK(await(io, gpu.async_exec(seq(copy, fill))));
    CHECK(await(io, gpu.async_exec(seq(fill, fill, fill, fill, copy, copy))));
    const auto s = await(io, gpu.async_stats()).value();
    std::map<std::string, std::uint64_t> counts;
    for (const auto& [name, row] : rows_of(s))
        counts[name] = row.count;
    CHECK(counts == std::map<std::string, std::uint64_t>{
                        {"memory.allocate", 2},
                        {"memory.fill<f32>", 2},
                        {"seq(memory.fill<f32>, memory.copy<f32>)", 2},
                        {"seq(memory.copy<f32>, memory.fill<f32>)", 1},
                        {"seq(memory.fill<f32>, memory.fill<f32>, memory.fill<f32>, memory.fill<f32> and 2 more)", 1},
                    });
    CHECK(s.completed == 8);
    CHECK(s.ops == 2 + 2 + 3 * 2 + 6);
}

TEST_CASE("two snapshots give rates")
{
    asio::io_context io;
    auto gpu = make_device(io);
    const std::vector<float> data(1000, 1.0f);
    auto x = await(io, gpu.async_upload(data)).value();
    const auto before = await(io, gpu.async_stats()).value();
    CHECK(before.bytes_to_device == 4000);
    CHECK(before.bytes_to_host == 0);
    std::vector<float> back(1000);
    for (int i = 0; i < 3; ++i) {
        CHECK(await(io, gpu.async_write(x, data)));
        CHECK(await(io, gpu.async_read(x, back)));
        CHECK(await(io, gpu.async_download(x)));
    }
    // A failed op does not count any bytes.
    CHECK_FALSE(await(io, gpu.async_read(x, std::span(back).first(10))));
    const auto after = await(io, gpu.async_stats()).value();
    CHECK(after.at > before.at);
    CHECK(after.completed - before.completed == 9);
    CHECK(after.ops - before.ops == 9);
    CHECK(after.bytes_to_device - before.bytes_to_device == 3 * 4000);
    CHECK(after.bytes_to_host - before.bytes_to_host == 6 * 4000);
    auto rows = rows_of(after);
    const auto& write = rows["memory.write<f32>"];
    CHECK(write.count == 4);
    CHECK(write.sum >= write.max);
    CHECK(write.sum <= write.max * 4);
    CHECK(write.sum >= rows_of(before)["memory.write<f32>"].sum);
}

TEST_CASE("the high-water mark is the most memory in use at one time")
{
    asio::io_context io;
    auto gpu = make_device(io);
    auto x = await(io, gpu.async_alloc<float>(16384)).value();
    {
        auto y = await(io, gpu.async_alloc<float>(16384)).value();
    }
    test::run_until(io, [&] { return await(io, gpu.async_stats()).value().memory.used == 65536; });
    CHECK(await(io, gpu.async_stats()).value().memory.high_water == 131072);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_statistics
