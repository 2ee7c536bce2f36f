// A build without the CUDA backend returns an error when a GPU is required, and otherwise runs on the CPU, in this
// process and in a worker process.
#include <coaccel/coaccel.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

/// The backend of a device and the result it computed.
struct answer {
    std::string backend;
    float sum = 0;
};

asio::awaitable<ca::result<answer>> add_up(asio::any_io_executor executor, ca::device_kind kind, ca::isolation where)
{
    const std::vector<float> numbers{1, 2, 3, 4};
    ca::device_options options;
    options.kind = kind;
    options.isolation = where;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));
    BOOST_OUTCOME_CO_TRY(auto stats, co_await gpu.async_stats());
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(numbers));
    BOOST_OUTCOME_CO_TRY(const float sum, co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()}));
    co_return answer{std::move(stats.backend), sum};
}

ca::result<answer> ask(ca::device_kind kind, ca::isolation where)
{
    asio::io_context io;
    ca::result<answer> got;
    asio::co_spawn(io, add_up(io.get_executor(), kind, where),
                   [&](std::exception_ptr, ca::result<answer> r) { got = std::move(r); });
    io.run();
    return got;
}

bool refuses_cuda(ca::isolation where)
{
    const auto got = ask(ca::device_kind::cuda, where);
    if (got) {
        std::printf("device_kind::cuda gave a device of %s\n", got.value().backend.c_str());
        return false;
    }
    std::printf("device_kind::cuda: %s\n", got.error().message().c_str());
    return got.error() == ca::errc::backend_unavailable && ca::is_device_lost(got.error()) &&
           got.error().message() == "this build of coaccel has no CUDA backend";
}

bool best_is_host(ca::isolation where)
{
    const auto got = ask(ca::device_kind::best, where);
    std::printf("device_kind::best: %s\n", got ? got.value().backend.c_str() : got.error().message().c_str());
    return got && got.value().backend == "host" && got.value().sum == 10;
}

} // namespace

int main()
{
    bool good = true;
    for (const auto where : {ca::isolation::in_process, ca::isolation::worker}) {
        good &= refuses_cuda(where);
        good &= best_is_host(where);
    }
    return good ? 0 : 1;
}
