#include "isolation.hpp"

#include <coaccel/ops/memory.hpp>

#include <csignal>

namespace coaccel::bench {
namespace {

device_options host_device(host_mode mode, int threads)
{
    device_options o;
    o.kind = device_kind::host;
    o.host.mode = mode;
    o.host.threads = threads;
    return o;
}

/// A device and a buffer to fill.
struct filling {
    explicit filling(const device_options& o) : on(o), x(on.get<buffer<float>>(on.gpu().async_alloc<float>(1))) {}

    auto start() const
    {
        return [gpu = &on.gpu(), op = memory::fill<float>{x, 1.0f}] { return gpu->async_exec(op); };
    }

    one_device on;
    buffer<float> x;
};

void round_trip(rows& table, const char* name, std::chrono::nanoseconds spin, double goal, const char* goal_text)
{
    const auto o = host_device(host_mode::inline_, 1);
    filling ours(isolated(o, spin));
    filling theirs(o);
    round_trip_rows(table, name, ours, theirs, goal, goal_text);
}

void kill_worker(one_device& d)
{
    const int process = d.get<device_stats>(d.gpu().async_stats()).hardware.process;
    if (process <= 0 || ::kill(process, SIGKILL) != 0)
        throw failure("the worker cannot be killed");
}

} // namespace

void worker_round_trip_rows(rows& table)
{
    round_trip(table, "worker_rtt_spin", spinning, 3, "<= +3");
    round_trip(table, "worker_rtt_block", blocking, 25, "<= +25");
}

void worker_depth_row(rows& table)
{
    const auto o = host_device(host_mode::pool, 1);
    filling ours(isolated(o));
    filling theirs(o);
    depth_row(table, ours, theirs);
}

void worker_copy_rows(rows& table)
{
    copy_rows(table, host_device(host_mode::pool, 0));
}

void worker_recovery_rows(rows& table)
{
    constexpr int rounds = 15;
    constexpr auto between = std::chrono::milliseconds(200);
    const auto o = host_device(host_mode::pool, 1);
    recovery_row(table, o, {"recover_warm", 1, 30, "<= 30 ms", rounds, between, kill_worker});
    recovery_row(table, o, {"recover_cold", 0, 600, "<= 600 ms", rounds, between, kill_worker});
}

void worker_memory_row(rows& table)
{
    memory_row(table, host_device(host_mode::pool, 1));
}

} // namespace coaccel::bench
