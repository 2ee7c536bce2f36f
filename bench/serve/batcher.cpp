#include "device/devices.hpp"
#include "row.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace coaccel::bench {
namespace {

using clock = std::chrono::steady_clock;
using serve::batch_model;
using serve::dynamic_batcher;

constexpr std::size_t row_length = 16;

using vector = std::array<float, row_length>;

template <class T>
T value_or_exit(result<T> r)
{
    if (!r) {
        std::fprintf(stderr, "bench: %s\n", r.error().message().c_str());
        std::exit(1);
    }
    return std::move(r).value();
}

/// Copies its input.
plan_description identity(std::uint32_t rows)
{
    plan_builder b("identity" + std::to_string(rows));
    const auto x = b.input<float>(rows * row_length);
    const auto y = b.output<float>(rows * row_length);
    b.add(memory::copy<float>{x, y});
    return value_or_exit(b.finish());
}

batch_model identity_model(std::vector<std::uint32_t> sizes)
{
    std::vector<serve::batch_plan> plans;
    for (const auto rows : sizes)
        plans.push_back({rows, identity(rows)});
    return value_or_exit(batch_model::create(std::move(plans)));
}

dynamic_batcher make_batcher(asio::io_context& io, std::vector<device> devices, std::vector<std::uint32_t> sizes,
                             int in_flight)
{
    serve::batcher_options o;
    o.max_in_flight = in_flight;
    return await<dynamic_batcher>(io, dynamic_batcher::async_create(io.get_executor(), std::move(devices),
                                                                    std::vector{identity_model(std::move(sizes))}, o));
}

/// The memory of one client.
struct client {
    vector from{1};
    vector to{};
};

template <class Runs>
asio::awaitable<void> run_loop(Runs runs, client* c, int count)
{
    for (int i = 0; i < count; ++i) {
        const auto r = co_await runs.async_run(from(c->from), to(c->to));
        if (!r || c->to[0] != 1) {
            std::fprintf(stderr, "bench: a request failed\n");
            std::exit(1);
        }
    }
}

template <class Runs>
double time_clients(asio::io_context& io, const Runs& runs, std::deque<client>& clients, int each)
{
    for (client& c : clients)
        asio::co_spawn(io, run_loop(runs, &c, each), asio::detached);
    return timed_run(io) / (static_cast<double>(clients.size()) * each);
}

/// Posts itself again and again.
struct hop {
    asio::io_context* io;
    int left;

    void operator()() const
    {
        if (left > 0)
            asio::post(*io, hop{io, left - 1});
    }
};

double post_time(asio::io_context& io, int chains, int each)
{
    for (int i = 0; i < chains; ++i)
        asio::post(io, hop{&io, each});
    return timed_run(io) / (static_cast<double>(chains) * each);
}

/// The host time for each request in full batches, with almost no work in them: the coroutine of the client, the
/// request, its place in the batch, the copies of 64 bytes there and back, and its part of the run and of the turns.
void overhead_row(rows& table)
{
    constexpr int size = 64;
    constexpr int each = 1000;
    // As for a server with several threads. Until a process has started its first thread, the C library and shared_ptr
    // do without atomic instructions, and a post takes half of the time.
    std::thread([] {}).join();
    asio::io_context io;
    const auto gpu = make_device(io, host_mode::inline_);
    const auto batcher = make_batcher(io, {gpu}, {size}, 4);
    std::deque<client> clients(size);
    auto p = side_by_side(
        9, [&] { return time_clients(io, batcher, clients, each); }, [&] { return post_time(io, size, each); });
    p.ours *= 1e9;
    p.theirs *= 1e9;
    table.push_back(at_most("batcher_overhead", p, 4, "ns/request", "<= 4"));
}

asio::awaitable<void> alternate(plan alone, dynamic_batcher batcher, client* c, int count, std::vector<double>* times)
{
    for (int i = 0; i < 2 * count; ++i) {
        const auto began = clock::now();
        if (i % 2 == 0)
            (void)co_await batcher.async_run(from(c->from), to(c->to));
        else
            (void)co_await alone.async_run(from(c->from), to(c->to));
        times[i % 2].push_back(std::chrono::duration<double>(clock::now() - began).count());
    }
}

/// What a batcher adds to a request that has no company.
void idle_row(rows& table)
{
    constexpr int count = 5000;
    asio::io_context io(1);
    const auto gpu = make_device(io, host_mode::pool);
    const auto alone = await<plan>(io, gpu.async_load(identity(1)));
    const auto batcher = make_batcher(io, {gpu}, {1, 64}, 4);
    client c;
    std::vector<double> times[2];
    // The first requests load the plan for one row.
    for (int round = 0; round < 2; ++round) {
        for (auto& t : times)
            t.clear();
        asio::co_spawn(io, alternate(alone, batcher, &c, count, times), asio::detached);
        timed_run(io);
    }
    table.push_back(
        at_most_more("batcher_idle_delay", {median(times[0]) * 1e6, median(times[1]) * 1e6}, 20, "us", "<= +20 us"));
}

/// Two devices, one of which takes three times as long for each batch, against what each does alone.
void balance_row(rows& table)
{
    using namespace std::chrono_literals;
    constexpr int each = 40;
    asio::io_context io(1);
    std::deque<fault_injector> slowness;
    std::vector<device> devices;
    for (const auto delay : {1ms, 3ms}) {
        device_options o;
        o.kind = device_kind::host;
        o.host.threads = 1;
        o.host.injector = &slowness.emplace_back(host_faults{.delay = delay});
        devices.push_back(await<device>(io, device::async_create(io.get_executor(), o)));
    }
    std::deque<client> clients(64);
    const auto throughput = [&](std::vector<device> some) {
        const auto batcher = make_batcher(io, std::move(some), {8}, 2);
        time_clients(io, batcher, clients, 4);
        return 1 / time_clients(io, batcher, clients, each);
    };
    const double both = throughput(devices);
    const double sum = throughput({devices[0]}) + throughput({devices[1]});
    table.push_back(at_least("replica_balance", {both, sum}, 0.9, "requests/s", ">= 0.9"));
    devices.clear();
    timed_run(io);
}

} // namespace

void batcher_rows(rows& table)
{
    overhead_row(table);
    idle_row(table);
    balance_row(table);
}

} // namespace coaccel::bench
