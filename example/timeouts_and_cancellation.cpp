// Four ways to stop waiting: a deadline, a timer, a cancellation signal, and cancelling everything at once.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <iostream>
#include <string_view>

namespace ca = coaccel;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

bool expect(std::string_view what, const ca::error_code& got, const ca::error_code& wanted)
{
    std::cout << what << ": " << got.message() << '\n';
    return got == wanted;
}

ca::error_code error_of(const ca::result<void>& r)
{
    return r ? ca::error_code() : r.error();
}

// The wait ends at the deadline. The device runs one op at a time, so the second op waits and is never started.
asio::awaitable<bool> deadline(ca::device gpu, ca::ref<float> x)
{
    const ca::memory::fill<float> op{.dst = x, .value = 1};
    gpu.async_exec(op, asio::detached);
    //[deadline
    const auto done = co_await gpu.with(ca::within(1ms)).async_exec(op);
    //]
    co_return expect("deadline", error_of(done), ca::errc::deadline_exceeded);
}

// The timer expires first and the op is cancelled. The op had not started, so it has no effect.
asio::awaitable<bool> timer(ca::device gpu, ca::ref<float> x)
{
    const ca::memory::fill<float> op{.dst = x, .value = 2};
    gpu.async_exec(op, asio::detached);
    //[timer
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timeout(gpu.get_executor(), 1ms);
    const auto first =
        co_await (gpu.async_exec(op, ca::as_result(asio::use_awaitable)) || timeout.async_wait(asio::use_awaitable));
    const bool timed_out = first.index() == 1;
    //]
    std::cout << "timer: " << (timed_out ? "timed out" : "in time") << '\n';
    co_return timed_out;
}

// Without coroutines: the owner of the signal can cancel the op.
asio::awaitable<bool> signal(ca::device gpu, ca::ref<float> x)
{
    const ca::memory::fill<float> op{.dst = x, .value = 3};
    //[cancellation_slot
    asio::cancellation_signal stop;
    ca::error_code outcome;
    gpu.async_exec(op, asio::bind_cancellation_slot(stop.slot(), [&](ca::error_code ec) { outcome = ec; }));
    stop.emit(asio::cancellation_type::terminal);
    //]
    // Completions keep the order of the requests, so the handler above has run when this op completes.
    const auto later = co_await gpu.async_exec(op);
    const bool aborted = expect("signal", outcome, asio::error::operation_aborted);
    co_return later.has_value() && aborted;
}

// Cancels all ops that the device has accepted so far.
asio::awaitable<bool> cancel_all(ca::device gpu, ca::ref<float> x)
{
    const ca::memory::fill<float> op{.dst = x, .value = 4};
    int cancelled = 0;
    auto count = [&](ca::error_code ec) { cancelled += ec == asio::error::operation_aborted ? 1 : 0; };
    for (int i = 0; i < 10; ++i)
        gpu.async_exec(op, count);
    //[cancel_all
    gpu.cancel();
    //]
    const auto after = co_await gpu.async_exec(op);
    std::cout << "cancel: " << cancelled << " of 10\n";
    co_return after&& cancelled == 10;
}

asio::awaitable<ca::result<bool>> run()
{
    ca::device_options options;
    options.queue.max_in_flight = 1;
    options.kind = ca::device_kind::host;
    options.host.faults.delay = 20ms; // every op takes this long
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc<float>(8));

    bool right = co_await deadline(gpu, x);
    right = co_await timer(gpu, x) && right;
    right = co_await signal(gpu, x) && right;
    right = co_await cancel_all(gpu, x) && right;
    co_return right;
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
