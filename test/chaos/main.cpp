// Random faults, cancellations, deadlines, releases and shutdowns on several devices, from many coroutines. Every op
// must complete exactly once, every successful result must be correct, and nothing may be leaked at the end.
#include "chaos.hpp"
#include "plan_runs.hpp"
#include "server_runs.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace chaos {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

device_options common_options(int seat)
{
    device_options o;
    o.kind = device_kind::host;
    o.host.threads = 2;
    o.context.lanes = seat == 1 ? lane_policy::pooled(3) : seat == 2 ? lane_policy::per_library() : lane_policy();
    o.context.monitor_interval = 5ms;
    o.queue.max_in_flight = 64;
    o.queue.max_queued = 256;
    o.restart.window = 1s;
    o.restart.initial_backoff = 1ms;
    o.restart.max_backoff = 5ms;
    return o;
}

asio::awaitable<void> renew(seat& s, tally& counts)
{
    const auto ex = co_await asio::this_coro::executor;
    for (;;) {
        auto made = co_await device::async_create(ex, s.options);
        if (!made)
            continue;
        auto old = s.replace(std::move(made).value());
        if (old) {
            (void)co_await old.async_shutdown(counts.shutdowns++ % 2 == 0 ? shutdown::drain : shutdown::abandon);
        }
        co_return;
    }
}

namespace {

constexpr int device_count = 4;
constexpr int clients_per_device = 60;
constexpr int thread_count = 3;
constexpr auto grace = 60s;

asio::awaitable<void> trouble(scenario& what, seat& s, tally& counts, const std::atomic<bool>& stop, std::uint32_t seed)
{
    dice random(seed);
    const auto longest = static_cast<std::uint32_t>(what.longest_pause().count());
    while (!stop.load(std::memory_order_relaxed)) {
        co_await pause(std::chrono::milliseconds(1 + random.pick(longest)));
        co_await what.strike(s, counts, random);
    }
}

/// Buffers without an owner must have been released, and all work must end. Work that was cancelled may end later than
/// its call, in a hung context only when the context is given up.
asio::awaitable<void> close(seat& s, std::atomic<std::uint64_t>& leaked)
{
    auto gpu = s.replace({});
    const auto end = steady_clock::now() + 10s;
    for (;;) {
        auto stats = co_await gpu.async_stats();
        const device_stats left = stats ? stats.value() : device_stats();
        const auto n = left.live_buffers + left.in_flight + left.queued;
        if (n == 0)
            break;
        if (steady_clock::now() > end) {
            std::fprintf(stderr, "left on a device: live_buffers=%llu in_flight=%llu queued=%llu\n",
                         static_cast<unsigned long long>(left.live_buffers),
                         static_cast<unsigned long long>(left.in_flight), static_cast<unsigned long long>(left.queued));
            leaked += n;
            break;
        }
        co_await pause(1ms);
    }
    (void)co_await gpu.async_shutdown();
}

asio::awaitable<void> progress_line(const tally& counts, const std::atomic<bool>& stop)
{
    while (!stop.load(std::memory_order_relaxed)) {
        co_await pause(500ms);
        std::fprintf(stderr, "\rops=%llu", static_cast<unsigned long long>(counts.ops.over()));
    }
    std::fprintf(stderr, "\n");
}

/// How many of them have not finished by then.
std::uint64_t unended(const std::vector<std::future<void>>& all, steady_clock::time_point end)
{
    std::uint64_t n = 0;
    for (const auto& f : all)
        n += f.wait_until(end) == std::future_status::timeout;
    return n;
}

int run(scenario& what, int seconds, std::uint32_t seed)
{
    if (!what.begin())
        return 1;
    std::vector<std::unique_ptr<seat>> seats;
    std::optional<asio::io_context> own;
    auto& io = own.emplace();
    auto work = asio::make_work_guard(io);
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back([&] { io.run(); });

    tally counts;
    std::atomic<bool> stop{false};
    for (int i = 0; i < device_count; ++i) {
        seats.push_back(std::make_unique<seat>(what.options_for(i)));
        asio::co_spawn(io, renew(*seats.back(), counts), asio::use_future).get();
    }
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < device_count * clients_per_device; ++i) {
        clients.push_back(std::make_unique<client>(*seats[static_cast<std::size_t>(i % device_count)], counts,
                                                   seed + 100 + static_cast<std::uint32_t>(i), what.most_elements(),
                                                   stop));
        counts.clients.add();
        asio::co_spawn(io, clients.back()->run(), asio::detached);
    }
    std::vector<std::future<void>> troubles;
    for (std::size_t i = 0; i < seats.size(); ++i)
        troubles.push_back(asio::co_spawn(
            io, trouble(what, *seats[i], counts, stop, seed + static_cast<std::uint32_t>(i)), asio::use_future));
    auto line = asio::co_spawn(io, progress_line(counts, stop), asio::use_future);

    asio::steady_timer(io, std::chrono::seconds(seconds)).async_wait(asio::use_future).get();
    stop = true;
    std::uint64_t hung = unended(troubles, steady_clock::now() + grace);
    line.get();
    const auto end = steady_clock::now() + grace;
    // First the clients, because they submit ops.
    counts.clients.wait_until_over(end);
    counts.ops.wait_until_over(end);
    hung += counts.clients.left() + counts.stuck;
    const std::uint64_t lost = counts.ops.left();

    std::uint64_t faults = what.faults();
    std::atomic<std::uint64_t> leaked{0};
    std::vector<std::future<void>> closings;
    for (auto& s : seats) {
        faults += s->injector.played();
        closings.push_back(asio::co_spawn(io, close(*s, leaked), asio::use_future));
    }
    leaked += unended(closings, steady_clock::now() + grace);
    work.reset();
    if (hung + lost + leaked != 0)
        io.stop();
    for (auto& t : threads)
        t.join();
    // Work that devices leave to its threads, such as ending standbys, has finished then.
    own.reset();
    leaked += what.left();

    what.print_ends();
    std::printf("out_of_memory=%llu\n", static_cast<unsigned long long>(counts.out_of_memory.load()));
    std::printf("faults=%llu ops=%llu succeeded=%llu shutdowns=%llu wrong=%llu unexpected=%llu\n",
                static_cast<unsigned long long>(faults), static_cast<unsigned long long>(counts.ops.over()),
                static_cast<unsigned long long>(counts.succeeded.load()),
                static_cast<unsigned long long>(counts.shutdowns.load()),
                static_cast<unsigned long long>(counts.wrong.load()),
                static_cast<unsigned long long>(counts.unexpected.load()));
    std::printf("faults=%llu ops=%llu lost=%llu hung=%llu leaked=%llu\n", static_cast<unsigned long long>(faults),
                static_cast<unsigned long long>(counts.ops.over()), static_cast<unsigned long long>(lost),
                static_cast<unsigned long long>(hung), static_cast<unsigned long long>(leaked.load()));
    // Some faults are rare, and so are requests that are too large, but both occur in a run of this length.
    const bool alive = faults > 0 && counts.succeeded > 0 && (counts.out_of_memory > 0 || seconds < 5) &&
                       (what.saw_all_ends() || seconds < 30);
    return lost + hung + leaked + counts.wrong + counts.unexpected == 0 && alive ? 0 : 1;
}

bool number(const char* text, int& value)
{
    const auto [end, ec] = std::from_chars(text, text + std::strlen(text), value);
    return ec == std::errc() && *end == '\0' && value > 0;
}

int usage(const char* program)
{
    std::fprintf(
        stderr,
        "usage: %s [--worker | --plans [--batched] [--faults N] | --server] [--seconds N] [--seed N] [--verbose]\n",
        program);
    return 2;
}

} // namespace
} // namespace chaos

int main(int argc, char** argv)
{
    std::optional<int> limit;
    int seconds = 10;
    int faults = 0;
    int seed = static_cast<int>(std::random_device{}() % 1000000) + 1;
    bool isolated = false;
    bool plans = false;
    bool batched = false;
    bool server = false;
    bool verbose = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const char* const next = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--worker")
            isolated = true;
        else if (word == "--plans")
            plans = true;
        else if (word == "--server")
            server = true;
        else if (word == "--verbose")
            verbose = true;
        else if (word == "--batched")
            batched = true;
        else if (word == "--seconds" && chaos::number(next, seconds)) {
            limit = seconds;
            ++i;
        } else if ((word == "--seed" && chaos::number(next, seed)) ||
                   (word == "--faults" && chaos::number(next, faults)))
            ++i;
        else
            return chaos::usage(argv[0]);
    }
    if ((faults > 0 || batched) && !plans)
        return chaos::usage(argv[0]);
    std::printf("seed=%d\n", seed);
    // Each fault is a warning.
    if (!verbose)
        coaccel::set_log_sink(coaccel::log_level::error, nullptr);
    if (server)
        return chaos::run_server({.seconds = seconds, .seed = static_cast<std::uint32_t>(seed)});
    if (plans)
        return chaos::run_plans({.faults = static_cast<std::uint64_t>(faults),
                                 .batched = batched,
                                 .seconds = limit.value_or(faults > 0 ? 600 : seconds),
                                 .seed = static_cast<std::uint32_t>(seed)});
    const auto what = isolated ? chaos::worker_scenario() : chaos::in_process_scenario();
    return chaos::run(*what, seconds, static_cast<std::uint32_t>(seed));
}
