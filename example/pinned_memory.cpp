// Host memory that a GPU accesses directly: pinned for transfers, managed for access from both sides.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>
#include <numeric>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

//[pinned
// One request of a server: it arrives in pinned memory, and its answer leaves from there.
asio::awaitable<ca::result<void>> serve(ca::device gpu, ca::pinned_buffer<float>& message)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(message));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::blas::scal<float>{.x = x, .n = x.size(), .alpha = 2}));
    co_return co_await gpu.async_read(x, message.span());
}
//]

//[managed
asio::awaitable<ca::result<float>> sum_of_squares(ca::device gpu)
{
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_alloc_managed<float>(1000));
    std::iota(x.span().begin(), x.span().end(), 0.0f);
    BOOST_OUTCOME_CO_TRYV(
        co_await gpu.async_exec(ca::memory::prefetch<float>{.target = x.ref(), .to = ca::memory::place::device}));
    co_return co_await gpu.async_exec(ca::blas::dot<float>{.x = x.ref(), .y = x.ref(), .n = x.size()});
}
//]

asio::awaitable<ca::result<void>> run()
{
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(auto message, co_await gpu.async_alloc_pinned<float>(4));
    std::iota(message.begin(), message.end(), 1.0f);
    BOOST_OUTCOME_CO_TRYV(co_await serve(gpu, message));
    for (const float x : message)
        std::cout << x << ' ';
    BOOST_OUTCOME_CO_TRY(auto sum, co_await sum_of_squares(gpu));
    std::cout << "and " << sum << '\n';
    if (message[3] != 8 || sum < 3.3e8f || sum > 3.4e8f)
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
