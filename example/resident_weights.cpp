// Weights that stay on the device: after the loss of the context the library sets them up again, and the job is
// repeated.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <functional>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[job
// One request: the weights as they are on the device, the input from the host.
asio::awaitable<ca::result<float>> score(ca::device gpu, ca::resident<float> weights, const std::vector<float>& input)
{
    BOOST_OUTCOME_CO_TRY(const auto w, co_await weights.async_get());
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(input));
    co_return co_await gpu.async_exec(ca::blas::dot<float>{.x = x, .y = w, .n = w.size()});
}
//]

asio::awaitable<ca::result<bool>> run(ca::fault_injector& injector)
{
    //[options
    // "host" unless COACCEL_DEVICE says otherwise, for example "cuda:1,worker,standby=1".
    BOOST_OUTCOME_CO_TRY(auto options, ca::parse_device_options("host,restart.initial_backoff=1ms"));
    BOOST_OUTCOME_CO_TRY(options, ca::device_options_from_environment(options));
    std::cout << "device: " << to_string(options) << '\n';
    //]
    options.host.injector = &injector;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));

    //[use
    const ca::resident<float> weights(gpu, {1, 2, 3});
    const std::vector<float> input{1, 1, 2};
    BOOST_OUTCOME_CO_TRY(const float before, co_await ca::with_retry({}, score, gpu, weights, std::cref(input)));
    injector.poison(); // the next operation ends its context
    BOOST_OUTCOME_CO_TRY(const float after, co_await ca::with_retry({}, score, gpu, weights, std::cref(input)));
    //]
    std::cout << before << ", and in generation " << gpu.status().generation << ": " << after << '\n';
    co_return (before == 9 && after == 9 && gpu.status().generation == 2);
}

} // namespace

int main()
{
    ca::fault_injector injector;
    asio::io_context io;
    auto running = asio::co_spawn(io, run(injector), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
