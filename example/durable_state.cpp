// A counter in device memory that survives the end of its worker process, again and again.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <csignal>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[durable_count
// Adds 1 to the counter. The ref of the counter is valid in every generation; the other operand is uploaded each time.
asio::awaitable<ca::result<void>> count_one(ca::device gpu, const ca::durable_buffer<float>& counter)
{
    const std::vector<float> one{1};
    BOOST_OUTCOME_CO_TRY(const auto x, co_await gpu.async_upload(one));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::blas::axpy<float>{.x = x, .y = counter, .n = 1, .alpha = 1}));
    co_return ca::success();
}
//]

//[durable_decide
// A loss may have interrupted an operation that was writing the counter. Only the program knows whether the
// content is usable: here it is trusted if it has one of the two values that it can have, and otherwise begins again.
asio::awaitable<ca::result<float>> decide(ca::device gpu, const ca::durable_buffer<float>& counter, float last)
{
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_trust(counter));
    BOOST_OUTCOME_CO_TRY(const auto found, co_await gpu.async_download(counter.ref()));
    if (found[0] == last || found[0] == last + 1)
        co_return found[0];
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_clear(counter));
    co_return 0.0f;
}
//]

asio::awaitable<ca::result<bool>> run()
{
    ca::device_options options;
    options.kind = ca::device_kind::host;
    options.isolation = ca::isolation::worker; // memory of this process would end with its context
    options.standby = 1;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(const auto counter, co_await gpu.async_alloc_durable<float>(1));

    auto generations = gpu.watch_generation();
    float counted = 0;
    for (int loss = 0; loss < 3; ++loss) {
        for (int i = 0; i < 10; ++i) {
            auto done = co_await count_one(gpu, counter);
            if (!done && counter.suspect()) {
                BOOST_OUTCOME_CO_TRY(counted, co_await decide(gpu, counter, counted));
            } else {
                BOOST_OUTCOME_CO_TRYV(done);
                ++counted;
            }
        }
        BOOST_OUTCOME_CO_TRY(const auto stats, co_await gpu.async_stats());
        ::kill(stats.hardware.process, SIGKILL); // the worker, and with it everything in its memory
        BOOST_OUTCOME_CO_TRYV(co_await generations.async_changed());
    }
    BOOST_OUTCOME_CO_TRY(const auto found, co_await gpu.async_download(counter.ref()));
    std::cout << "counted: " << counted << ", on the device: " << found[0] << '\n';
    co_return found[0] == counted&& counted == 30;
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
