#include "device/devices.hpp"
#include "heap.hpp"
#include "row.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <array>
#include <deque>

namespace coaccel::bench {
namespace {

constexpr double to_us = 1e6;
constexpr std::size_t length = 64;
constexpr int ops = 12;

using vector = std::array<float, length>;

/// The input, to which a constant is added eleven times.
plan_description twelve_ops()
{
    plan_builder b("twelve");
    const auto x = b.input<float>(length);
    const auto w = b.constant<float>(vector{1});
    const auto y = b.output<float>(length);
    b.add(memory::copy<float>{x, y});
    for (int i = 1; i < ops; ++i)
        b.add(blas::axpy<float>{.x = w, .y = y, .n = length});
    auto made = b.finish();
    if (!made) {
        std::fprintf(stderr, "bench: %s\n", made.error().message().c_str());
        std::exit(1);
    }
    return std::move(made).value();
}

/// The memory of one client.
struct client {
    vector from{1};
    vector to{};
};

asio::awaitable<void> run_loop(plan p, client* c, int count)
{
    for (int i = 0; i < count; ++i)
        (void)co_await p.async_run(from(c->from), to(c->to));
}

/// A device with the plan, and clients that each run it again and again.
class planned {
public:
    planned(host_mode mode, int clients)
        : gpu_(make_device(io_, mode)),
          plan_(
              await<plan>(io_, gpu_.async_load(twelve_ops(), plan_options{.instances = clients, .initial = clients}))),
          clients_(static_cast<std::size_t>(clients))
    {}

    /// The seconds per run.
    double time(int runs_each)
    {
        for (client& c : clients_)
            asio::co_spawn(io_, run_loop(plan_, &c, runs_each), asio::detached);
        return timed_run(io_) / (static_cast<double>(clients_.size()) * runs_each);
    }

    bool is_right() const
    {
        return std::ranges::all_of(clients_, [](const client& c) { return c.to[0] == ops && c.to[1] == 0; });
    }

private:
    asio::io_context io_;
    device gpu_;
    plan plan_;
    std::deque<client> clients_;
};

asio::awaitable<void> op_loop(device gpu, ref<float> x, ref<float> w, ref<float> y, int count)
{
    for (int i = 0; i < count; ++i) {
        (void)co_await gpu.async_exec(memory::copy<float>{x, y});
        for (int k = 1; k < ops; ++k)
            (void)co_await gpu.async_exec(blas::axpy<float>{.x = w, .y = y, .n = length});
    }
}

void against_ops(rows& table)
{
    constexpr int runs = 2000;
    planned ours(host_mode::inline_, 1);
    asio::io_context io;
    const auto gpu = make_device(io, host_mode::inline_);
    const vector one{1};
    const auto x = await<buffer<float>>(io, gpu.async_upload(one));
    const auto w = await<buffer<float>>(io, gpu.async_upload(one));
    const auto y = await<buffer<float>>(io, gpu.async_alloc<float>(length));
    const auto p = side_by_side(
        9, [&] { return ours.time(runs); },
        [&] {
            asio::co_spawn(io, op_loop(gpu, x, w, y, runs), asio::detached);
            return timed_run(io) / runs;
        });
    const bool right = ours.is_right();
    table.push_back(at_most("plan_host_vs_ops", {p.ours * to_us, p.theirs * to_us}, 0.3, "us/12 ops", "<= 0.3"));
    table.back().met &= right;
}

void allocations(rows& table, const char* name, host_mode mode, int clients)
{
    constexpr int runs = 2000;
    planned ours(mode, clients);
    double worst = 0;
    // The first rounds fill the caches. The difference of two run lengths cancels the allocations for spawning the
    // loops.
    for (int round = 0; round < 4; ++round) {
        const auto before = heap().allocations;
        ours.time(runs);
        const auto few = heap().allocations - before;
        ours.time(2 * runs);
        const auto many = heap().allocations - before - few;
        worst = many > few ? static_cast<double>(many - few) / (clients * runs) : 0;
    }
    table.push_back({name, worst, worst, 0, "allocations/run", "0", worst < 0.0005});
}

} // namespace

void plan_rows(rows& table)
{
    against_ops(table);
    allocations(table, "allocations_per_run", host_mode::inline_, 1);
    allocations(table, "allocations_per_run_depth64", host_mode::pool, 64);
}

} // namespace coaccel::bench
