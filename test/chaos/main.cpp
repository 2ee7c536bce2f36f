// Random faults, cancellations, deadlines, releases and shutdowns against several devices from many
// coroutines. Every op must be answered exactly once, every right answer must be right, and in the end
// nothing may be left.
#include <coaccel/coaccel.hpp>

#include <boost/asio.hpp>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int device_count = 4;
constexpr int clients_per_device = 60;
constexpr int thread_count = 3;
constexpr auto grace = 60s;

struct tally {
    std::atomic<std::uint64_t> asked{0};
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> succeeded{0};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> unexpected{0};
    std::atomic<std::uint64_t> shutdowns{0};
    std::atomic<int> clients{0};
};

/// One place for a device; when the device is shut down or fails, another takes its place.
class seat {
public:
    explicit seat(const device_options& o) : options(o)
    {
        options.kind = device_kind::host;
        options.host.injector = &injector;
    }

    device current()
    {
        const std::scoped_lock lock(mutex_);
        return device_;
    }

    device replace(device d)
    {
        const std::scoped_lock lock(mutex_);
        return std::exchange(device_, std::move(d));
    }

    fault_injector injector;
    device_options options;

private:
    std::mutex mutex_;
    device device_;
};

device_options options_for(int i)
{
    constexpr completion strategies[] = {completion::adaptive, completion::host_fn, completion::sync,
                                         completion::adaptive};
    device_options o;
    o.kind = device_kind::host;
    o.host.mode = i == 3 ? host_mode::in_turn : host_mode::pool;
    o.host.threads = 2;
    o.host.memory_limit = 8 << 20;
    o.context.completion = strategies[i];
    o.context.lanes = i == 1 ? lane_policy::pooled(3) : lane_policy::per_library();
    o.context.monitor_interval = 5ms;
    o.context.hang_timeout = 50ms;
    o.queue.max_in_flight = 64;
    o.queue.max_queued = 256;
    o.restart.max_restarts = 50;
    o.restart.window = 1s;
    o.restart.initial_backoff = 1ms;
    o.restart.max_backoff = 5ms;
    return o;
}

// What may go wrong here, one way or another.
bool expected(const error_code& ec)
{
    return ec == fault::context_lost || ec == fault::busy || ec == fault::stopped || ec == errc::stale_ref ||
           ec == errc::device_failed || ec == asio::error::operation_aborted;
}

class client {
public:
    client(seat& where, tally& counts, std::uint32_t seed, const std::atomic<bool>& stop)
        : where_(where), counts_(counts), random_(seed), stop_(stop)
    {}

    asio::awaitable<void> run()
    {
        while (!stop_.load(std::memory_order_relaxed)) {
            const bool fine = co_await round(where_.current());
            if (!fine) {
                // Back off, so that a device that is down is not drowned.
                asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
                co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
            }
        }
        --counts_.clients;
    }

private:
    std::uint32_t pick(std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_); }

    void count(const error_code& ec)
    {
        ++counts_.answered;
        if (!ec)
            ++counts_.succeeded;
        else if (!expected(ec) && counts_.unexpected++ < 10)
            std::fprintf(stderr, "unexpected: %s\n", ec.message().c_str());
    }

    /// Counts an answer; true when it is a success.
    template <class T>
    bool take(const result<T>& r)
    {
        count(r ? error_code() : r.error());
        return r.has_value();
    }

    exec_options how()
    {
        exec_options o;
        o.priority = static_cast<priority>(pick(3));
        if (pick(4) == 0)
            o.deadline = steady_clock::now() + std::chrono::microseconds(pick(3000));
        if (pick(8) == 0)
            o.lane = static_cast<int>(pick(4));
        if (pick(16) == 0)
            o.when_full = when_full::fail;
        return o;
    }

    asio::awaitable<bool> round(device gpu)
    {
        const std::size_t n = 1 + pick(2000);
        const auto value = static_cast<float>(1 + pick(100));
        const std::vector<float> data(n, value);
        ++counts_.asked;
        auto x = co_await gpu.async_upload(data);
        if (!take(x))
            co_return false;
        ++counts_.asked;
        auto y = co_await gpu.async_alloc<float>(n, init::zero);
        if (!take(y))
            co_return false;
        switch (pick(4)) {
        case 0: co_return co_await add(gpu, std::move(x).value(), std::move(y).value(), value);
        case 1: co_return co_await reduce(gpu, std::move(x).value(), value);
        case 2: co_return co_await cancelled(gpu, std::move(x).value());
        default: co_return co_await unawaited(gpu, std::move(x).value(), std::move(y).value());
        }
    }

    asio::awaitable<bool> add(device gpu, buffer<float> x, buffer<float> y, float value)
    {
        const auto twice = blas::axpy<float>{.x = x, .y = y, .n = x.size(), .alpha = 2.0f};
        ++counts_.asked;
        auto summed = co_await gpu.async_exec(seq(twice, twice), how());
        if (!take(summed))
            co_return false;
        // Gone while the download may still wait for it.
        x.reset();
        ++counts_.asked;
        auto out = co_await gpu.async_download(y);
        if (!take(out))
            co_return false;
        for (const float v : out.value())
            counts_.wrong += v != 4 * value;
        co_return true;
    }

    asio::awaitable<bool> reduce(device gpu, buffer<float> x, float value)
    {
        ++counts_.asked;
        auto sum = co_await gpu.async_exec(blas::asum<float>{.x = x, .n = x.size()}, how());
        if (!take(sum))
            co_return false;
        counts_.wrong += sum.value() != value * static_cast<float>(x.size());
        co_return true;
    }

    asio::awaitable<bool> cancelled(device gpu, buffer<float> x)
    {
        const auto ex = co_await asio::this_coro::executor;
        // One strand for the signal and the handler, as Asio asks of everybody.
        auto strand = asio::make_strand(ex);
        auto signal = std::make_shared<asio::cancellation_signal>();
        auto on_answer = [self = this, signal](error_code ec) { self->count(ec); };
        auto start = [gpu, x = std::make_shared<buffer<float>>(std::move(x)), options = how(), signal, strand,
                      on_answer]() {
            gpu.async_exec(memory::fill<float>{*x, 1.0f}, options,
                           asio::bind_cancellation_slot(signal->slot(), asio::bind_executor(strand, on_answer)));
        };
        ++counts_.asked;
        asio::post(strand, start);
        asio::post(strand, [signal] { signal->emit(asio::cancellation_type::total); });
        co_return true;
    }

    asio::awaitable<bool> unawaited(device gpu, buffer<float> x, buffer<float> y)
    {
        auto on_answer = [self = this](error_code ec) { self->count(ec); };
        for (int i = 0; i < 8; ++i) {
            ++counts_.asked;
            gpu.async_exec(memory::copy<float>{x, y}, how(), on_answer);
        }
        co_return true;
    }

    seat& where_;
    tally& counts_;
    std::minstd_rand random_;
    const std::atomic<bool>& stop_;
};

/// Makes sure that the seat holds a device that works.
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

asio::awaitable<void> trouble(std::vector<std::unique_ptr<seat>>& seats, tally& counts, const std::atomic<bool>& stop,
                              std::uint32_t seed)
{
    std::minstd_rand random(seed);
    auto pick = [&](std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random); };
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!stop.load(std::memory_order_relaxed)) {
        timer.expires_after(std::chrono::milliseconds(1 + pick(20)));
        co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        seat& s = *seats[pick(device_count)];
        auto& faults = s.injector;
        const bool threads = s.options.host.mode == host_mode::pool;
        const auto what = pick(20);
        if (what < 10)
            faults.poison();
        else if (what < 12 && threads)
            faults.hang();
        else if (what < 14)
            faults.refuse_starts(2);
        else if (what < 16)
            s.current().cancel();
        else if (what == 16 || s.current().status().state == device_state::failed)
            co_await renew(s, counts);
    }
}

/// Buffers nobody holds any more must be gone.
asio::awaitable<void> close(seat& s, std::atomic<std::uint64_t>& leaked, std::atomic<int>& open)
{
    auto gpu = s.replace({});
    if (auto stats = co_await gpu.async_stats())
        leaked += stats.value().live_buffers + stats.value().in_flight + stats.value().queued;
    (void)co_await gpu.async_shutdown();
    --open;
}

asio::awaitable<void> progress_line(const tally& counts, const std::atomic<bool>& stop)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (!stop.load(std::memory_order_relaxed)) {
        timer.expires_after(500ms);
        co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        std::fprintf(stderr, "\rops=%llu", static_cast<unsigned long long>(counts.answered.load()));
    }
    std::fprintf(stderr, "\n");
}

template <class Condition>
bool wait_for(Condition condition)
{
    const auto end = steady_clock::now() + grace;
    while (!condition() && steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
    return condition();
}

int run(int seconds, std::uint32_t seed)
{
    std::vector<std::unique_ptr<seat>> seats;
    asio::io_context io;
    auto work = asio::make_work_guard(io);
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back([&] { io.run(); });

    tally counts;
    std::atomic<bool> stop{false};
    for (int i = 0; i < device_count; ++i) {
        seats.push_back(std::make_unique<seat>(options_for(i)));
        asio::co_spawn(io, renew(*seats.back(), counts), asio::use_future).get();
    }
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < device_count * clients_per_device; ++i) {
        clients.push_back(std::make_unique<client>(*seats[static_cast<std::size_t>(i % device_count)], counts,
                                                   seed + 1 + static_cast<std::uint32_t>(i), stop));
        ++counts.clients;
        asio::co_spawn(io, clients.back()->run(), asio::detached);
    }
    auto troubles = asio::co_spawn(io, trouble(seats, counts, stop, seed), asio::use_future);
    auto line = asio::co_spawn(io, progress_line(counts, stop), asio::use_future);

    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    stop = true;
    troubles.get();
    line.get();
    wait_for([&] { return counts.clients == 0 && counts.asked == counts.answered; });
    const auto hung = static_cast<std::uint64_t>(counts.clients.load());
    const std::uint64_t lost = counts.asked - counts.answered;

    std::uint64_t faults = 0;
    std::atomic<std::uint64_t> leaked{0};
    std::atomic<int> open{0};
    for (auto& s : seats) {
        faults += s->injector.played();
        ++open;
        asio::co_spawn(io, close(*s, leaked, open), asio::detached);
    }
    wait_for([&] { return open == 0; });
    leaked += static_cast<std::uint64_t>(open.load());
    work.reset();
    if (hung + lost + leaked == 0) {
        for (auto& t : threads)
            t.join();
    } else {
        io.stop();
        for (auto& t : threads)
            t.join();
    }

    std::printf("faults=%llu ops=%llu succeeded=%llu shutdowns=%llu wrong=%llu unexpected=%llu\n",
                static_cast<unsigned long long>(faults), static_cast<unsigned long long>(counts.answered.load()),
                static_cast<unsigned long long>(counts.succeeded.load()),
                static_cast<unsigned long long>(counts.shutdowns.load()),
                static_cast<unsigned long long>(counts.wrong.load()),
                static_cast<unsigned long long>(counts.unexpected.load()));
    std::printf("faults=%llu ops=%llu lost=%llu hung=%llu leaked=%llu\n", static_cast<unsigned long long>(faults),
                static_cast<unsigned long long>(counts.answered.load()), static_cast<unsigned long long>(lost),
                static_cast<unsigned long long>(hung), static_cast<unsigned long long>(leaked.load()));
    const bool alive = faults > 0 && counts.succeeded > 0;
    return lost + hung + leaked + counts.wrong + counts.unexpected == 0 && alive ? 0 : 1;
}

bool number(const char* text, int& value)
{
    const auto [end, ec] = std::from_chars(text, text + std::strlen(text), value);
    return ec == std::errc() && *end == '\0' && value > 0;
}

} // namespace

int main(int argc, char** argv)
{
    int seconds = 10;
    int seed = static_cast<int>(std::random_device{}() % 1000000) + 1;
    for (int i = 1; i < argc; i += 2) {
        const bool known = i + 1 < argc && ((std::strcmp(argv[i], "--seconds") == 0 && number(argv[i + 1], seconds)) ||
                                            (std::strcmp(argv[i], "--seed") == 0 && number(argv[i + 1], seed)));
        if (!known) {
            std::fprintf(stderr, "usage: %s [--seconds N] [--seed N]\n", argv[0]);
            return 2;
        }
    }
    std::printf("seed=%d\n", seed);
    return run(seconds, static_cast<std::uint32_t>(seed));
}
