// Random numbers on a device: drawn, used there, and repeated from their position in the sequence.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <cmath>
#include <iostream>

namespace ca = coaccel;
namespace asio = boost::asio;

//[draw
// The variance of normal numbers, computed where they are drawn.
asio::awaitable<ca::result<float>> variance(ca::device gpu, ca::rand::generator from)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc<float>(1'000'000));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::rand::normal<float>{.dst = x, .from = from}));
    BOOST_OUTCOME_CO_TRY(const float sum, co_await gpu.async_exec(ca::blas::dot<float>{.x = x, .y = x, .n = x.size()}));
    co_return sum / static_cast<float>(x.size());
}
//]

//[repeat
// Draws again what an earlier op has drawn: the position is in the reply of that op.
asio::awaitable<ca::result<bool>> can_repeat(ca::device gpu, ca::rand::generator from)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc<float>(8));
    BOOST_OUTCOME_CO_TRY(const auto drawn, co_await gpu.async_exec(ca::rand::uniform<float>{.dst = x, .from = from}));
    BOOST_OUTCOME_CO_TRY(const auto first, co_await gpu.async_download(x));
    const auto again = ca::rand::make_generator({.seed = from.options().seed, .offset = drawn.position});
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::rand::uniform<float>{.dst = x, .from = again}));
    BOOST_OUTCOME_CO_TRY(const auto second, co_await gpu.async_download(x));
    co_return first == second;
}
//]

asio::awaitable<ca::result<void>> run()
{
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const auto from = ca::rand::make_generator({.seed = 42});
    BOOST_OUTCOME_CO_TRY(const float v, co_await variance(gpu, from));
    BOOST_OUTCOME_CO_TRY(const bool repeated, co_await can_repeat(gpu, from));
    std::cout << "variance " << v << ", the numbers can " << (repeated ? "" : "not ") << "be repeated\n";
    if (std::abs(v - 1) > 0.01f || !repeated)
        co_return ca::errc::backend_error;
    co_return ca::success();
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
