#include "plan_runs.hpp"

#include "processes.hpp"

#include <algorithm>
#include <cstdio>
#include <future>
#include <limits>
#include <thread>

namespace chaos {
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int seat_count = 3;
constexpr int clients_per_seat = 100;
/// Of the clients of a seat.
constexpr int poisoned_clients = 4;
constexpr int thread_count = 3;
constexpr auto grace = 60s;

/// The last seat gets injected faults instead of poisoned clients.
bool injects(int seat) noexcept
{
    return seat == seat_count - 1;
}

device_options options_for(int seat)
{
    device_options o = common_options(seat);
    o.isolation = isolation::worker;
    o.standby = seat == 1 ? 2 : 1;
    o.plugin = COACCEL_CHAOS_PLUGIN;
    o.context.hang_timeout = 1s;
    // Kills from outside count; here the budget must not be spent.
    o.restart.max_restarts = 1'000'000;
    // Clients go on without awaiting all of their runs while a device is rebuilt, and none of these may be refused.
    o.queue.max_queued = 10'000;
    o.worker.staging_bytes = 1 << 20;
    o.worker.log = [](std::string_view) {};
    return o;
}

plan_options how_to_load(bool injecting)
{
    plan_options how{.instances = 32, .poison_limit = std::numeric_limits<int>::max()};
    if (injecting)
        how.instances = how.initial = initial_instances;
    return how;
}

asio::awaitable<void> open(plan_seat& s, bool batched, bool injecting)
{
    auto made = co_await device::async_create(co_await asio::this_coro::executor, s.options);
    if (!made) {
        std::fprintf(stderr, "no device can be made: %s\n", made.error().message().c_str());
        co_return;
    }
    s.device = std::move(made).value();
    if (batched) {
        serve::batcher_options how;
        how.plan = how_to_load(injecting);
        // The number of instances, too.
        if (injecting)
            how.max_in_flight = initial_instances;
        const std::vector devices{s.device};
        const std::vector models{test::poisonable_model()};
        auto made_batcher =
            co_await serve::dynamic_batcher::async_create(co_await asio::this_coro::executor, devices, models, how);
        if (made_batcher)
            s.batcher = std::move(made_batcher).value();
        else
            std::fprintf(stderr, "no batcher can be made: %s\n", made_batcher.error().message().c_str());
        co_return;
    }
    auto loaded = co_await s.device.async_load(test::poisonable_plan(), how_to_load(injecting));
    if (loaded)
        s.plan = std::move(loaded).value();
    else
        std::fprintf(stderr, "the plan cannot be loaded: %s\n", loaded.error().message().c_str());
}

asio::awaitable<device_stats> stats_of(plan_seat& s)
{
    auto stats = co_await s.device.async_stats();
    co_return stats ? std::move(stats).value() : device_stats();
}

asio::awaitable<void> close(plan_seat& s)
{
    s.plan = {};
    if (s.batcher)
        (void)co_await std::exchange(s.batcher, {}).async_shutdown(shutdown::drain);
    (void)co_await std::exchange(s.device, {}).async_shutdown();
}

asio::awaitable<void> progress_line(const run_tally& counts, const std::atomic<bool>& stop)
{
    while (!stop.load(std::memory_order_relaxed)) {
        co_await pause(500ms);
        std::fprintf(stderr, "\rruns=%llu", static_cast<unsigned long long>(counts.runs.over()));
    }
    std::fprintf(stderr, "\n");
}

std::uint64_t unended(const std::vector<std::future<void>>& all, steady_clock::time_point end)
{
    return static_cast<std::uint64_t>(
        std::ranges::count_if(all, [&](auto& f) { return f.wait_until(end) == std::future_status::timeout; }));
}

/// Objects that are created once and kept exist after the first device.
std::ptrdiff_t descriptors_after_first_device()
{
    asio::io_context io;
    device::async_create(io.get_executor(), options_for(0), [](error_code, const device&) {});
    io.run();
    return open_descriptors();
}

struct summary {
    /// The contexts that were lost.
    std::uint64_t faults = 0;
    std::uint64_t reruns = 0;
    std::uint64_t convicted = 0;
    std::uint64_t unended = 0;
};

void print(const run_tally& counts, const summary& s, std::uint64_t leaked)
{
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("succeeded=%llu given_up=%llu replaced=%llu convicted=%llu longest_ms=%llu\n", number(counts.succeeded),
                number(counts.given_up), number(counts.replaced), number(s.convicted), number(counts.longest / 1000));
    std::printf("runs=%llu lost=%llu hung=%llu leaked=%llu wrong=%llu\n", number(counts.runs.over()),
                number(counts.runs.left()), number(s.unended), number(leaked), number(counts.wrong));
    std::printf("runs=%llu faults=%llu reruns=%llu poisoned_sent=%llu poisoned_answered=%llu innocent_failed=%llu\n",
                number(counts.runs.over()), number(s.faults), number(s.reruns), number(counts.poisoned_sent),
                number(counts.poisoned_answered), number(counts.innocent_failed));
}

/// Waits for the faults, or for the end of the time.
asio::awaitable<void> enough(const seat_list& seats, const run_tally& counts, plan_runs_options how)
{
    const auto end = steady_clock::now() + std::chrono::seconds(how.seconds);
    while (steady_clock::now() < end) {
        co_await pause(100ms);
        std::uint64_t contexts = 0;
        for (const auto& seat : seats) {
            const auto stats = co_await stats_of(*seat);
            contexts += stats.restarts;
        }
        if (how.faults > 0 && contexts >= how.faults + counts.replaced)
            co_return;
    }
}

} // namespace

int run_plans(const plan_runs_options& how)
{
    const std::uint32_t seed = how.seed;
    const auto descriptors = descriptors_after_first_device();
    seat_list seats;
    std::optional<asio::io_context> own;
    auto& io = own.emplace();
    auto work = asio::make_work_guard(io);
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back([&] { io.run(); });

    run_tally counts;
    summary s;
    std::atomic<bool> stop{false};
    for (int i = 0; i < seat_count; ++i) {
        seats.push_back(std::make_unique<plan_seat>(options_for(i)));
        asio::co_spawn(io, open(*seats.back(), how.batched, injects(i)), asio::use_future).get();
    }
    std::vector<std::unique_ptr<run_client>> clients;
    std::vector<std::unique_ptr<plan_trouble>> makers;
    std::vector<std::future<void>> troubles;
    for (int i = 0; i < seat_count; ++i) {
        plan_seat& seat = *seats[static_cast<std::size_t>(i)];
        for (int k = 0; k < clients_per_seat; ++k) {
            clients.push_back(std::make_unique<run_client>(seat, counts,
                                                           seed + static_cast<std::uint32_t>(clients.size()),
                                                           k < poisoned_clients && !injects(i), stop));
            counts.clients.add();
            asio::co_spawn(asio::make_strand(io), clients.back()->run(), asio::detached);
        }
        makers.push_back(std::make_unique<plan_trouble>(seats, seat, counts,
                                                        seed + 1000 + static_cast<std::uint32_t>(i), injects(i), stop));
        troubles.push_back(asio::co_spawn(io, makers.back()->run(), asio::use_future));
    }
    auto line = asio::co_spawn(io, progress_line(counts, stop), asio::use_future);

    asio::co_spawn(io, enough(seats, counts, how), asio::use_future).get();
    stop = true;
    s.unended = unended(troubles, steady_clock::now() + grace);
    line.get();
    const auto end = steady_clock::now() + grace;
    // First the clients, because they start runs.
    counts.clients.wait_until_over(end);
    counts.runs.wait_until_over(end);
    s.unended += counts.clients.left() + counts.stuck;

    std::vector<std::future<void>> closings;
    for (auto& seat : seats) {
        const auto stats = asio::co_spawn(io, stats_of(*seat), asio::use_future).get();
        s.faults += stats.restarts;
        s.reruns += stats.reruns;
        s.convicted += stats.convicted;
        closings.push_back(asio::co_spawn(io, close(*seat), asio::use_future));
    }
    s.faults -= std::min<std::uint64_t>(s.faults, counts.replaced);
    std::uint64_t leaked = unended(closings, steady_clock::now() + grace);
    work.reset();
    if (s.unended + counts.runs.left() + leaked != 0)
        io.stop();
    for (auto& t : threads)
        t.join();
    // Work that devices leave to its threads, such as ending standbys, has finished then.
    own.reset();
    leaked += left_resources(descriptors);

    print(counts, s, leaked);
    const bool alive = counts.succeeded > 0 && s.faults >= std::max<std::uint64_t>(how.faults, 1) && s.reruns > 0 &&
                       counts.poisoned_sent > 0;
    const bool clean = counts.runs.left() + s.unended + leaked + counts.wrong + counts.innocent_failed == 0;
    return alive && clean && counts.poisoned_answered == counts.poisoned_sent ? 0 : 1;
}

} // namespace chaos
