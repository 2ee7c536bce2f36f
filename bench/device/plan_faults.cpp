#include "isolation.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <csignal>

// Plans on devices whose workers are killed.
namespace coaccel::bench {
namespace {

constexpr std::size_t length = 64;

using vector = std::array<float, length>;

device_options host_device(host_mode mode = host_mode::pool)
{
    device_options o;
    o.kind = device_kind::host;
    o.host.mode = mode;
    o.host.threads = 1;
    return o;
}

/// y = x + w
plan_description sum()
{
    plan_builder b("sum");
    const auto x = b.input<float>(length);
    const auto w = b.constant<float>(vector{1});
    const auto y = b.output<float>(length);
    b.add(memory::copy<float>{x, y});
    b.add(blas::axpy<float>{.x = w, .y = y, .n = length});
    return value_of(b.finish(), "coaccel");
}

/// A device with the plan.
struct summing {
    explicit summing(const device_options& o, const plan_options& how = {})
        : on(o), p(on.get<plan>(on.gpu().async_load(sum(), how)))
    {}

    device_stats stats() { return on.get<device_stats>(on.gpu().async_stats()); }

    /// Until the standby has the plan.
    void wait_for_standby()
    {
        while (stats().standby_plans == 0)
            on.idle_for(std::chrono::milliseconds(1));
    }

    void kill_worker()
    {
        const int process = stats().hardware.process;
        if (process <= 0 || ::kill(process, SIGKILL) != 0)
            throw failure("the worker cannot be killed");
    }

    auto start()
    {
        return [this] { return p.async_run(from(x), to(y)); };
    }

    one_device on;
    plan p;
    vector x{1};
    vector y{};
};

device_options with_standbys(int standby)
{
    auto o = isolated(host_device());
    o.standby = standby;
    return o;
}

/// From the kill to the end of the first run in the next worker.
void recover_row(rows& table)
{
    constexpr int rounds = 15;
    constexpr double goal = 10;
    summing ours(with_standbys(1));
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        ours.wait_for_standby();
        const auto before = ours.on.gpu().status().generation;
        ours.kill_worker();
        const auto began = clock::now();
        // A run may end before the worker does.
        do
            ours.on.get<void>(ours.start()());
        while (ours.on.gpu().status().generation == before);
        times.push_back(seconds_since(began) * to_ms);
    }
    table.push_back(at_most("plan_recover_warm", {median(times), goal}, 1, "ms from kill", "<= 10 ms"));
}

struct stall {
    bool stop = false;
    double longest = 0;
};

asio::awaitable<void> keep_running(plan p, stall* s)
{
    const vector x{1};
    vector y{};
    while (!s->stop) {
        const auto began = clock::now();
        const auto r = co_await p.async_run(from(x), to(y));
        s->longest = std::max(s->longest, seconds_since(began));
        if (!r)
            throw failure("a run failed: " + r.error().message());
        if (y[0] != 2)
            throw failure("a result is wrong");
    }
}

asio::awaitable<void> keep_killing(device gpu, stall* s, int faults, clock::duration between)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int i = 0; i < faults; ++i) {
        timer.expires_after(between);
        co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        const auto stats = co_await gpu.async_stats();
        if (stats && stats.value().hardware.process > 0)
            ::kill(stats.value().hardware.process, SIGKILL);
    }
    s->stop = true;
}

/// The longest of all runs of 300 clients while workers are killed; none may fail.
void stall_row(rows& table)
{
    constexpr int clients = 300;
    constexpr int faults = 20;
    // The driver needs no time to report the end of a process.
    constexpr double goal = 60;
    summing ours(with_standbys(2), {.instances = 64});
    ours.wait_for_standby();
    stall s;
    int next = 0;
    ours.on.run(clients + 1, [&]() -> asio::awaitable<void> {
        if (next++ == 0)
            return keep_killing(ours.on.gpu(), &s, faults, std::chrono::milliseconds(250));
        return keep_running(ours.p, &s);
    });
    table.push_back(at_most("plan_fault_stall", {s.longest * to_ms, goal}, 1, "ms longest", "<= 60 ms"));
}

/// A run that can be repeated against one that cannot.
void repeatable_row(rows& table)
{
    constexpr int rounds = 15;
    constexpr int each = 3000;
    constexpr double goal = 0.3;
    summing ours(host_device(host_mode::inline_));
    summing theirs(host_device(host_mode::inline_), {.rerun = rerun_policy::never});
    const auto time_of = [](summing& s) {
        return [&s] { return s.on.run(1, [&] { return await_each(s.start(), each); }) / each; };
    };
    const auto p = side_by_side(rounds, time_of(ours), time_of(theirs));
    table.push_back(at_most_more("plan_repeatable", scaled(p, to_us), goal, "us/run", "<= +0.3"));
}

} // namespace

void plan_fault_rows(rows& table)
{
    recover_row(table);
    stall_row(table);
    repeatable_row(table);
}

} // namespace coaccel::bench
