// A user-defined kernel, compiled by nvcc and awaited like any other op. It runs on the CPU when there is no GPU.
#include "smooth.hpp"

#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

void smooth_on_cpu(std::span<const float> in, std::span<float> out)
{
    for (std::size_t i = 0; i < in.size(); ++i) {
        const float left = in[i == 0 ? 0 : i - 1];
        const float right = in[i + 1 == in.size() ? i : i + 1];
        out[i] = (left + in[i] + right) / 3.0f;
    }
}

//[own_kernel
// On a GPU this puts the kernel on the device's stream and returns; on the CPU it does the work.
void smooth(ca::native_stream stream, std::span<const float> in, std::span<float> out)
{
    if (stream.backend != "cuda")
        smooth_on_cpu(in, out);
    else if (!smooth_on_gpu(in, out, stream.handle))
        throw std::runtime_error("the kernel was not started");
}

asio::awaitable<ca::result<std::vector<float>>> smooth_twice(ca::device gpu, const std::vector<float>& data)
{
    BOOST_OUTCOME_CO_TRY(auto a, co_await gpu.async_upload(data));
    BOOST_OUTCOME_CO_TRY(auto b, co_await gpu.async_alloc<float>(data.size()));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_submit(ca::in(a), ca::out(b), &smooth));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_submit(ca::in(b), ca::out(a), &smooth));
    co_return co_await gpu.async_download(a);
}
//]

asio::awaitable<ca::result<void>> run()
{
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(auto stats, co_await gpu.async_stats());

    std::vector<float> data(100000);
    std::iota(data.begin(), data.end(), 0.0f);
    std::vector<float> once(data.size());
    std::vector<float> expected(data.size());
    smooth_on_cpu(data, once);
    smooth_on_cpu(once, expected);
    BOOST_OUTCOME_CO_TRY(auto got, co_await smooth_twice(gpu, data));
    const bool same = std::ranges::equal(
        got, expected, [](float x, float y) { return std::abs(x - y) <= 1e-6f * std::max(1.0f, std::abs(y)); });
    std::cout << got.size() << " numbers smoothed on " << stats.hardware.name << (same ? "\n" : ", but wrongly\n");
    if (!same)
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
