#include "isolation.hpp"
#include "rows.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <vector>

// Clients of a plan on an isolated GPU while some runs of the same plan fault.
namespace coaccel::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t length = 64;
constexpr int clients = 300;

using vector = std::array<float, length>;

/// The first element of the input.
constexpr float harmless = 3;
constexpr float illegal_address = 1;
constexpr float trap = 2;

constexpr char source[] = R"(
extern "C" __global__ void twice(const float* x, float* y)
{
    if (x[0] == 1.0f)
        y[1ull << 44] = 1.0f;
    if (x[0] == 2.0f)
        asm volatile("trap;");
    y[threadIdx.x] = 2.0f * x[threadIdx.x];
}
)";

/// Written by one thread: that of the io_context.
struct watch {
    bool stop = false;
    std::uint64_t runs = 0;
    double longest = 0;
};

asio::awaitable<void> keep_running(plan p, watch* w)
{
    const vector x{harmless};
    vector y{};
    while (!w->stop) {
        const auto began = clock::now();
        const auto r = co_await p.async_run(from(x), to(y));
        w->longest = std::max(w->longest, seconds_since(began));
        ++w->runs;
        if (!r)
            throw failure("an innocent run failed: " + r.error().message());
        if (y[0] != 2 * harmless)
            throw failure("a result is wrong");
    }
}

/// Runs the poisoned input and returns the seconds until its error.
asio::awaitable<double> poison(plan p, float input)
{
    const vector x{input};
    vector y{};
    const auto began = clock::now();
    const auto r = co_await p.async_run(from(x), to(y));
    if (r || r.error() != errc::context_lost)
        throw failure("a poisoned run has not lost its context");
    co_return seconds_since(began);
}

asio::awaitable<void> poison_each(plan p, watch* w, int faults, clock::duration between)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int i = 0; i < faults; ++i) {
        timer.expires_after(between);
        co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        co_await poison(p, illegal_address);
    }
    w->stop = true;
}

class poisoned_server {
public:
    poisoned_server(const stage& s, int standby, const plan_options& how) : on_(gpu_device(standby))
    {
        jit::compile_options options("twice");
        options.cache_folder(s.folder);
        const auto kernel = on_.get<jit::kernel>(on_.gpu().async_compile(source, std::move(options)));
        plan_builder b("twice");
        const auto x = b.input<float>(length);
        const auto y = b.output<float>(length);
        b.add(pure(jit::launch(kernel, {.block = {length}}, in(x), out(y))));
        plan_ = on_.get<plan>(on_.gpu().async_load(value_of(b.finish(), "coaccel"), how));
    }

    void wait_for_standby()
    {
        while (on_.get<device_stats>(on_.gpu().async_stats()).standby_plans == 0)
            on_.idle_for(1ms);
    }

    /// Without other runs: the device runs it alone from the start, so its error is the driver's report.
    double time_of_report()
    {
        wait_for_standby();
        double took = 0;
        on_.run(1, [&] { return measure_poison(plan_, illegal_address, &took); });
        return took;
    }

    watch serve(int faults, clock::duration between)
    {
        wait_for_standby();
        watch w;
        int next = 0;
        on_.run(clients + 1,
                [&] { return next++ == 0 ? poison_each(plan_, &w, faults, between) : keep_running(plan_, &w); });
        return w;
    }

    /// From the start of a run that traps to the end of the first run that started after it.
    double time_to_success()
    {
        wait_for_standby();
        for (int i = 0; i < 50; ++i)
            run_once();
        vector x{trap}, y{};
        bool ended = false;
        const auto began = clock::now();
        plan_.async_run(from(x), to(y), [&](error_code) { ended = true; });
        run_once();
        const double took = seconds_since(began);
        while (!ended)
            on_.idle_for(1ms);
        return took;
    }

private:
    static device_options gpu_device(int standby)
    {
        device_options o;
        o.kind = device_kind::cuda;
        o = isolated(o);
        o.standby = standby;
        o.restart.initial_backoff = 0ms;
        // Required by suspect_after.
        o.context.hang_timeout = 10s;
        return o;
    }

    static asio::awaitable<void> measure_poison(plan p, float input, double* took)
    {
        *took = co_await poison(p, input);
    }

    void run_once()
    {
        const vector x{harmless};
        vector y{};
        on_.get<void>(plan_.async_run(from(x), to(y)));
    }

    one_device on_;
    plan plan_;
};

} // namespace

void plan_trap_row(const stage& s, rows& table)
{
    constexpr int rounds = 5;
    constexpr double goal_ms = 60;
    // A run that waits for an instance is no suspect, and would wait until the one that traps has been convicted.
    poisoned_server ours(
        s, 1,
        {.instances = 16, .initial = 16, .poison_limit = 1000, .suspect_after = {.factor = 20, .at_least = 20ms}});
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i)
        times.push_back(ours.time_to_success() * to_ms);
    table.push_back(at_most("plan_recover_trap", {median(times), goal_ms}, 1, "ms", "<= 60 ms"));
}

void plan_stall_row(const stage& s, rows& table)
{
    constexpr int faults = 30;
    constexpr double more_ms = 60;
    poisoned_server ours(s, 2, {.instances = 64, .poison_limit = 1000});
    // Before, so that the memory that the driver keeps after a first fault does not count.
    std::vector<double> reports;
    for (int i = 0; i < 5; ++i)
        reports.push_back(ours.time_of_report() * to_ms);
    const watch w = ours.serve(faults, 1s);
    for (int i = 0; i < 5; ++i)
        reports.push_back(ours.time_of_report() * to_ms);
    const double report = std::ranges::max(reports);
    table.push_back(at_most_more("plan_fault_stall", {w.longest * to_ms, 2 * report}, more_ms, "ms", "<= +60 ms"));
    table.push_back(without_goal("plan_fault_stall_runs", {static_cast<double>(w.runs), static_cast<double>(faults)},
                                 "runs, faults"));
}

} // namespace coaccel::bench
