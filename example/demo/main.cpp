// A TCP service that multiplies matrices with a plan on a device, several hundred clients, and a real fault at
// intervals. No client notices.
#include "client.hpp"
#include "report.hpp"
#include "saboteur.hpp"
#include "server.hpp"

#include <coaccel/core/log.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>

namespace ca = coaccel;
namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

constexpr int client_count = 300;
constexpr auto patience = 10s;

asio::awaitable<void> sleep_until(demo::tally::clock::time_point when)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, when);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<bool> run(std::chrono::seconds time, demo::tally& counts)
{
    const auto executor = co_await asio::this_coro::executor;
    ca::device_options options;
    // A GPU if there is one, in a separate process that can be replaced, with standby processes.
    options.isolation = ca::isolation::worker;
    // A standby is used up every 0.4 s, and on a GPU the next one takes about as long to become ready.
    options.standby = 2;
    // The faults are deliberate.
    ca::set_log_sink(ca::log_level::off, {});
    // Faults are frequent here, so the device may be rebuilt as often as needed, without growing delays.
    options.restart.max_restarts = 1'000'000;
    options.restart.initial_backoff = 5ms;
    options.restart.multiplier = 1;
    ca::device gpu = co_await ca::device::async_create(executor, options, asio::use_awaitable);

    tcp::acceptor acceptor(executor, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    const auto product = demo::make_product();
    const ca::plan_options how{.instances = 32};
    const ca::plan multiply = co_await gpu.async_load(product.value(), how, asio::use_awaitable);
    asio::co_spawn(executor, demo::serve(acceptor, multiply), asio::detached);
    demo::start_clients(executor, client_count, acceptor.local_endpoint(), counts);
    asio::co_spawn(executor, demo::sabotage(gpu, counts), asio::detached);

    const demo::progress_line line;
    const auto begin = demo::tally::clock::now();
    const auto end = begin + time;
    for (auto now = begin; now < end; now = demo::tally::clock::now()) {
        co_await sleep_until(std::min<demo::tally::clock::time_point>(now + line.interval(), end));
        line.show(counts, counts.faults, demo::tally::clock::now() - begin);
    }
    line.finish();

    // Each client first receives the answer it waits for; then its connection ends.
    counts.stopping = true;
    while (counts.clients_active > 0 && demo::tally::clock::now() < end + patience)
        co_await sleep_until(demo::tally::clock::now() + 10ms);
    const std::chrono::duration<double> elapsed = demo::tally::clock::now() - begin;

    // Waits for a context, in case the last fault destroyed it.
    co_await gpu.async_alloc<float>(1, asio::use_awaitable);
    const ca::device_stats stats = co_await gpu.async_stats(asio::use_awaitable);
    acceptor.close();
    co_await gpu.async_shutdown(asio::use_awaitable);
    co_return demo::summarize(counts, stats, counts.faults, client_count, elapsed);
}

} // namespace

int main(int argc, char** argv)
{
    int seconds = 12;
    if (argc == 3 && std::string_view(argv[1]) == "--seconds") {
        const std::string_view text(argv[2]);
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
        if (error != std::errc() || end != text.data() + text.size())
            seconds = 0;
    } else if (argc != 1) {
        seconds = 0;
    }
    if (seconds <= 0) {
        std::fprintf(stderr, "usage: %s [--seconds N]\n", argv[0]);
        return 2;
    }

    demo::tally counts;
    asio::io_context io(1);
    bool right = false;
    asio::co_spawn(io, run(std::chrono::seconds(seconds), counts), [&](std::exception_ptr e, bool r) {
        right = !e && r;
        if (e)
            std::fprintf(stderr, "the demonstration failed\n");
        io.stop();
    });
    io.run();
    return right ? 0 : 1;
}
