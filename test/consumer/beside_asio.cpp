// A user program that also uses Asio directly: signals, resolvers, timers and strands, in the io_context of its device.
// Asio keeps state in static variables, and all parts of a program must share the same ones.
#include <coaccel/coaccel.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

int failures = 0;

void expect(bool good, const char* what)
{
    if (!good)
        ++failures;
    std::printf("%s: %s\n", what, good ? "as expected" : "FAILED");
}

/// A device whose operations run on its executor, so that library code runs between all other handlers of the
/// io_context.
asio::awaitable<ca::device> make_device(asio::any_io_executor executor)
{
    ca::device_options options{.kind = ca::device_kind::host};
    options.host.mode = ca::host_mode::inline_;
    co_return co_await ca::device::async_create(executor, options, asio::use_awaitable);
}

asio::awaitable<void> use_device(ca::device dev)
{
    const std::vector<float> numbers{1, 2, 3, 4};
    const auto x = co_await dev.async_upload(numbers, asio::use_awaitable);
    const float sum = co_await dev.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()}, asio::use_awaitable);
    expect(sum == 10, "an operation");
}

/// Ends with the first signal, or after a timeout.
void signals()
{
    asio::io_context io;
    asio::signal_set set(io, SIGTERM, SIGUSR1);
    int got = 0;
    set.async_wait([&](const ca::error_code& ec, int number) { got = ec ? -1 : number; });
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto dev = co_await make_device(co_await asio::this_coro::executor);
            co_await use_device(dev);
            ::raise(SIGTERM);
        },
        asio::detached);
    io.run_for(10s);
    expect(got == SIGTERM, "a signal");
}

void resolver_and_timer()
{
    asio::io_context io;
    asio::ip::tcp::resolver resolver(io);
    asio::steady_timer timer(io, 1ms);
    bool resolved = false;
    bool expired = false;
    resolver.async_resolve("127.0.0.1", "80", asio::ip::tcp::resolver::numeric_service,
                           [&](const ca::error_code& ec, const asio::ip::tcp::resolver::results_type& found) {
                               resolved = !ec && !found.empty() && found.begin()->endpoint().port() == 80;
                           });
    timer.async_wait([&](const ca::error_code& ec) { expired = !ec; });
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto dev = co_await make_device(co_await asio::this_coro::executor);
            co_await use_device(dev);
        },
        asio::detached);
    io.run_for(10s);
    expect(resolved, "a resolver");
    expect(expired, "a timer");
}

/// Completion handlers of device operations on a strand, in an io_context with several threads.
void strand()
{
    asio::io_context io;
    auto strand = asio::make_strand(io);
    int inside = 0;
    int together = 0;
    int elsewhere = 0;
    int completed = 0;
    const auto enter = [&] {
        together += ++inside != 1;
        elsewhere += !strand.running_in_this_thread();
        std::this_thread::yield();
        --inside;
        ++completed;
    };
    constexpr int rounds = 500;
    const auto run = [&](ca::device dev) -> asio::awaitable<void> {
        const std::vector<float> numbers{1, 2, 3, 4};
        const auto x = co_await dev.async_upload(numbers, asio::use_awaitable);
        std::atomic<int> left = rounds;
        for (int i = 0; i < rounds; ++i) {
            asio::post(strand, enter);
            dev.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()},
                           asio::bind_executor(strand, [&](const ca::error_code& ec, float sum) {
                               enter();
                               elsewhere += ec || sum != 10;
                               --left;
                           }));
        }
        asio::steady_timer timer(io);
        while (left > 0) {
            timer.expires_after(1ms);
            co_await timer.async_wait(asio::use_awaitable);
        }
    };
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto dev = co_await make_device(co_await asio::this_coro::executor);
            co_await run(dev);
        },
        asio::detached);
    std::thread other([&] { io.run_for(20s); });
    io.run_for(20s);
    other.join();
    expect(completed == 2 * rounds && together == 0 && elsewhere == 0, "a strand");
}

/// An operation started on the device's own executor runs inside the initiating call, so the io_context runs only its
/// completion handler. This requires that the library detects a call from a thread of the io_context.
void turns()
{
    asio::io_context io(1);
    constexpr int rounds = 1000;
    std::size_t handlers = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            const auto dev = co_await make_device(co_await asio::this_coro::executor);
            const std::vector<float> numbers{1, 2, 3, 4};
            const auto x = co_await dev.async_upload(numbers, asio::use_awaitable);
            handlers = 0;
            for (int i = 0; i < rounds; ++i)
                co_await dev.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()}, asio::use_awaitable);
            std::printf("%d operations took %zu handlers\n", rounds, handlers);
            expect(handlers >= rounds && handlers < rounds + rounds / 4, "turns in the calling thread");
        },
        asio::detached);
    while (io.run_one() != 0)
        ++handlers;
}

} // namespace

int main()
{
    signals();
    resolver_and_timer();
    strand();
    turns();
    return failures;
}
