// A device in a worker process: the process is killed, and the device continues in a new one.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <csignal>
#include <iostream>
#include <string_view>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

//[isolated
asio::awaitable<ca::result<ca::device>> make_device()
{
    ca::device_options options;
    options.isolation = ca::isolation::worker;
    options.standby = 1; // another worker, which has created its context, is ready to take over
    co_return co_await ca::device::async_create(co_await asio::this_coro::executor, options);
}
//]

asio::awaitable<ca::result<float>> run()
{
    const std::vector<float> numbers(1000, 1.0f);
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await make_device());
    BOOST_OUTCOME_CO_TRY(auto before, co_await gpu.async_stats());

    ::kill(before.hardware.process, SIGKILL);

    //[retry
    // An upload refers to no memory of the lost worker, so the device can repeat it.
    const ca::exec_options again{.retry = ca::retry::idempotent};
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.with(again).async_upload(numbers));
    //]
    BOOST_OUTCOME_CO_TRY(auto sum, co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()}));
    BOOST_OUTCOME_CO_TRY(auto after, co_await gpu.async_stats());
    std::cout << "worker " << before.hardware.process << " was killed, worker " << after.hardware.process
              << " took over: generation " << after.generation << '\n';
    co_return sum;
}

int main()
{
    //[log
    // Messages of all devices, on a thread of the library. Without this, warnings and errors go to the standard error.
    ca::set_log_sink(ca::log_level::info,
                     [](ca::log_level, std::string_view message) { std::clog << message << '\n'; });
    //]
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto sum = running.get();
    if (!sum) {
        std::cerr << sum.error().message() << '\n';
        return 1;
    }
    std::cout << "sum: " << sum.value() << '\n';
    return sum.value() == 1000.0f ? 0 : 1;
}
