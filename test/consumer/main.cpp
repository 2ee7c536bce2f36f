// A user program: it multiplies two matrices on a host device, in this process and in a worker process, and calls a
// plug-in function that doubles them.
#include <coaccel/coaccel.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

asio::awaitable<ca::result<std::vector<float>>> multiply(asio::any_io_executor executor, ca::isolation where)
{
    const std::vector<float> ones(4, 1.0F);
    const std::vector<float> twos(4, 2.0F);

    ca::device_options options{.kind = ca::device_kind::host};
    options.isolation = where;
#ifdef WORKER_PROGRAM
    options.worker.program = WORKER_PROGRAM;
#endif
    options.plugin = PLUGIN;
    BOOST_OUTCOME_CO_TRY(auto dev, co_await ca::device::async_create(executor, options));
    BOOST_OUTCOME_CO_TRY(auto a, co_await dev.async_upload(std::span(ones)));
    BOOST_OUTCOME_CO_TRY(auto b, co_await dev.async_upload(std::span(twos)));
    BOOST_OUTCOME_CO_TRY(auto c, co_await dev.async_alloc<float>(4));
    BOOST_OUTCOME_CO_TRYV(
        co_await dev.async_exec(ca::blas::gemm<float>{.a = a, .b = b, .c = c, .m = 2, .n = 2, .k = 2}));
    BOOST_OUTCOME_CO_TRYV(co_await dev.async_exec(ca::plugin::call("twice", ca::inout(c))));
    co_return co_await dev.async_download(c);
}

bool works(ca::isolation where)
{
    asio::io_context io;
    ca::result<std::vector<float>> product;
    asio::co_spawn(io, multiply(io.get_executor(), where),
                   [&](std::exception_ptr, ca::result<std::vector<float>> r) { product = std::move(r); });
    io.run();
    if (!product)
        std::printf("%s\n", product.error().message().c_str());
    return product && product.value() == std::vector<float>(4, 8.0F);
}

} // namespace

int main()
{
    return works(ca::isolation::in_process) && works(ca::isolation::worker) ? 0 : 1;
}
