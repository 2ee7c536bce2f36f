// User-defined kernels that run in a worker process and are called by name. One of them is broken, and the program
// continues.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

//[call
asio::awaitable<ca::result<ca::device>> make_device()
{
    ca::device_options options;
    options.isolation = ca::isolation::worker;
    options.standby = 1;
    options.plugin = KERNELS; // the path of the shared object
    co_return co_await ca::device::async_create(co_await asio::this_coro::executor, options);
}

asio::awaitable<ca::result<std::vector<float>>> smooth(ca::device gpu, const std::vector<float>& data)
{
    BOOST_OUTCOME_CO_TRY(auto a, co_await gpu.async_upload(data));
    BOOST_OUTCOME_CO_TRY(auto b, co_await gpu.async_alloc<float>(data.size()));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::plugin::call("smooth", ca::in(a), ca::out(b))));
    co_return co_await gpu.async_download(b);
}
//]

asio::awaitable<ca::result<void>> run()
{
    const std::vector<float> data{0, 3, 6, 3, 0};
    const std::vector<float> expected{1, 3, 4, 3, 1};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await make_device());
    BOOST_OUTCOME_CO_TRY(auto stats, co_await gpu.async_stats());
    std::cout << "kernels run on " << stats.hardware.name << ", in process " << stats.hardware.process << '\n';
    BOOST_OUTCOME_CO_TRY(auto before, co_await smooth(gpu, data));

    //[version
    const auto broken = co_await gpu.async_exec(ca::plugin::call("stumble", ca::plugin::version{2}));
    //]
    std::cout << "the broken kernel: " << (broken ? "nothing happened" : broken.error().message()) << '\n';

    BOOST_OUTCOME_CO_TRY(auto after, co_await smooth(gpu, data));
    const auto status = gpu.status();
    std::cout << "the device is " << to_string(status.state) << " in generation " << status.generation << '\n';
    const bool fine = before == expected && after == expected && !broken && ca::is_context_lost(broken.error());
    co_return fine ? ca::result<void>(ca::success()) : ca::result<void>(ca::errc::backend_error);
}

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto outcome = running.get();
    if (!outcome)
        std::cerr << outcome.error().message() << '\n';
    return outcome ? 0 : 1;
}
