// The inference server with a model of handwritten digits, several hundred HTTP clients, and a fault at intervals. No
// client notices. It prints the address of the live page, and of a page on which one draws a digit.
#include "client.hpp"
#include "questions.hpp"
#include "report.hpp"
#include "saboteur.hpp"

#include <coaccel/core/log.hpp>
#include <coaccel/server/server.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace telemetry = coaccel::telemetry;
using asio::ip::tcp;
using namespace std::chrono_literals;

namespace {

constexpr int client_count = 300;
constexpr auto patience = 10s;

struct arguments {
    int seconds = 12;
    int port = 0;
};

/// Returns false for arguments that are not understood.
bool parse(int argc, char** argv, arguments& made)
{
    for (int i = 1; i < argc; i += 2) {
        const std::string_view name(argv[i]);
        int* const value = name == "--seconds" ? &made.seconds : name == "--port" ? &made.port : nullptr;
        if (!value || i + 1 == argc)
            return false;
        const std::string_view text(argv[i + 1]);
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
        if (error != std::errc() || end != text.data() + text.size())
            return false;
    }
    return made.seconds > 0 && made.port >= 0 && made.port < 65536;
}

ca::server::server_options what_to_serve(int port)
{
    ca::server::server_options options;
    options.port = static_cast<std::uint16_t>(port);
    options.model_folder = DIGITS_MODELS;
    options.page_folder = DIGITS_PAGE;
    options.io_threads = 1;
    // A GPU if there is one, in a separate process that can be replaced, with standby processes.
    auto device = ca::server::default_device();
    // A standby is used up every 0.4 s, and on a GPU the next one takes about as long to become ready.
    device.standby = 2;
    // Faults are frequent here, so the device may be rebuilt as often as needed, without growing delays.
    device.restart.max_restarts = 1'000'000;
    device.restart.initial_backoff = 5ms;
    device.restart.multiplier = 1;
    options.devices = {device};
    return options;
}

asio::awaitable<void> wait_until(demo::tally::clock::time_point when)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, when);
    co_await timer.async_wait(asio::use_awaitable);
}

/// Shows progress until `end`, or until the program is told to stop.
asio::awaitable<void> watch(const demo::tally& counts, const bool& told_to_stop, demo::tally::clock::time_point end)
{
    const demo::progress_line line;
    const auto begin = demo::tally::clock::now();
    auto shown = begin;
    for (auto now = begin; now < end && !told_to_stop; now = demo::tally::clock::now()) {
        co_await wait_until(std::min<demo::tally::clock::time_point>(now + 100ms, end));
        if (const auto after = demo::tally::clock::now(); after >= shown + line.interval() || after >= end) {
            line.show(counts, after - begin);
            shown = after;
        }
    }
    line.finish();
}

asio::awaitable<bool> run(asio::any_io_executor server_executor, arguments how, demo::tally& counts)
{
    const auto executor = co_await asio::this_coro::executor;
    const auto questions = demo::make_questions(DIGITS_DATA);
    bool told_to_stop = false;
    asio::signal_set signals(executor, SIGINT, SIGTERM);
    signals.async_wait([&](const boost::system::error_code& ec, int) {
        told_to_stop = !ec;
        // The next one ends the program at once.
        signals.clear();
    });

    const telemetry::registry metrics(server_executor);
    const auto serving = co_await ca::server::server::async_create(server_executor, what_to_serve(how.port), metrics,
                                                                   asio::use_awaitable);
    std::printf("live page      http://127.0.0.1:%u/\ndraw a digit   http://127.0.0.1:%u/page/\n\n", serving.port(),
                serving.port());

    const auto begin = demo::tally::clock::now();
    demo::start_clients(executor, client_count, tcp::endpoint(asio::ip::address_v4::loopback(), serving.port()),
                        questions, counts);
    asio::co_spawn(executor, demo::sabotage(metrics, counts), asio::detached);
    co_await watch(counts, told_to_stop, begin + std::chrono::seconds(how.seconds));

    // Each client first receives the answer it waits for; then its connection ends.
    counts.stopping = true;
    const auto stopped = demo::tally::clock::now();
    while (counts.clients_active > 0 && demo::tally::clock::now() < stopped + patience)
        co_await wait_until(demo::tally::clock::now() + 10ms);
    const std::chrono::duration<double> elapsed = demo::tally::clock::now() - begin;

    const auto snapshot = co_await metrics.async_collect(asio::use_awaitable);
    const bool right = demo::summarize(counts, snapshot, client_count, elapsed);
    co_await serving.async_shutdown(ca::shutdown::drain, asio::use_awaitable);
    co_return right;
}

} // namespace

int main(int argc, char** argv)
{
    arguments how;
    if (!parse(argc, argv, how)) {
        std::fprintf(stderr, "usage: %s [--seconds N] [--port N]\n", argv[0]);
        return 2;
    }
    // The faults are deliberate.
    ca::set_log_sink(ca::log_level::off, {});
    // The server has a thread of its own, the clients have this one.
    asio::thread_pool server_thread(1);
    demo::tally counts;
    asio::io_context io(1);
    bool right = false;
    asio::co_spawn(io, run(server_thread.get_executor(), how, counts), [&](std::exception_ptr e, bool r) {
        right = !e && r;
        try {
            if (e)
                std::rethrow_exception(e);
        } catch (const std::exception& what) {
            std::fprintf(stderr, "the demonstration failed: %s\n", what.what());
        }
        io.stop();
    });
    io.run();
    server_thread.join();
    return right ? 0 : 1;
}
