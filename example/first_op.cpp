// Multiplies two matrices: the smallest complete program.
//[first_op
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

asio::awaitable<ca::result<std::vector<float>>> multiply()
{
    // Column-major: the first two numbers are the first column.
    const std::vector<float> host_a{1, 3, 2, 4};
    const std::vector<float> host_b{5, 7, 6, 8};
    const ca::device_options options{};

    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(auto a, co_await gpu.async_upload(host_a));
    BOOST_OUTCOME_CO_TRY(auto b, co_await gpu.async_upload(host_b));
    BOOST_OUTCOME_CO_TRY(auto c, co_await gpu.async_alloc<float>(4));
    BOOST_OUTCOME_CO_TRYV(
        co_await gpu.async_exec(ca::blas::gemm<float>{.a = a, .b = b, .c = c, .m = 2, .n = 2, .k = 2}));
    co_return co_await gpu.async_download(c);
}

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, multiply(), asio::use_future);
    io.run();
    const auto product = running.get();

    if (!product) {
        std::cerr << product.error().message() << '\n';
        return 1;
    }
    for (const float x : product.value())
        std::cout << x << ' ';
    std::cout << '\n';
    return product.value() == std::vector<float>{19, 43, 22, 50} ? 0 : 1;
}
//]
