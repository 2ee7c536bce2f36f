#include "device/devices.hpp"
#include "heap.hpp"
#include "row.hpp"

#include <coaccel/core/trace.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <memory>

namespace coaccel::bench {
namespace {

asio::awaitable<void> traced_loop(device gpu, ref<float> x, int count)
{
    const auto with_parent = gpu.with({.trace = 1});
    for (int i = 0; i < count; ++i)
        (void)co_await with_parent.async_exec(memory::fill<float>{x, 1.0f});
}

class measured_device {
public:
    measured_device(asio::io_context& io, trace_buffer* trace)
        : io_(io), gpu_(make(io, trace)), x_(await<buffer<float>>(io, gpu_.async_alloc<float>(1)))
    {}

    const device& gpu() const noexcept { return gpu_; }

    /// Nanoseconds per op.
    double time(int ops)
    {
        asio::co_spawn(io_, traced_loop(gpu_, x_, ops), asio::detached);
        return 1e9 * timed_run(io_) / ops;
    }

private:
    static device make(asio::io_context& io, trace_buffer* trace)
    {
        device_options o;
        o.kind = device_kind::host;
        o.host.mode = host_mode::inline_;
        o.trace = trace;
        return await<device>(io, device::async_create(io.get_executor(), o));
    }

    asio::io_context& io_;
    device gpu_;
    buffer<float> x_;
};

/// The difference of two run lengths cancels the allocations for spawning the loop.
double allocations_per_op(measured_device& d)
{
    constexpr int ops = 20000;
    const auto before = heap().allocations;
    d.time(ops);
    const auto few = heap().allocations - before;
    d.time(2 * ops);
    const auto many = heap().allocations - before - few;
    return many > few ? static_cast<double>(many - few) / ops : 0;
}

} // namespace

void telemetry_rows(rows& table)
{
    // Short rounds, because the difference is much smaller than what other load on the machine changes in the meantime.
    constexpr int rounds = 1001;
    constexpr int ops = 1000;
    asio::io_context io;
    const auto trace = trace_buffer::create();
    measured_device plain(io, nullptr);
    measured_device registered(io, nullptr);
    measured_device traced(io, trace.get());
    const telemetry::registry metrics(io.get_executor());
    const auto kept = metrics.add(registered.gpu(), "gpu");
    const auto with_registry =
        side_by_side(rounds, [&] { return registered.time(ops); }, [&] { return plain.time(ops); });
    table.push_back(at_most_more("telemetry_cost", with_registry, 20, "ns/op", "<= +20 ns"));
    const auto with_trace = side_by_side(rounds, [&] { return traced.time(ops); }, [&] { return plain.time(ops); });
    table.push_back(without_goal("trace_cost", with_trace, "ns/op"));
    const double allocations = std::max(allocations_per_op(registered), allocations_per_op(traced));
    table.push_back(
        {"telemetry_allocations", allocations, allocations, 0, "allocations/op", "0", allocations < 0.0005});
}

} // namespace coaccel::bench
