// A kernel as source text: compiled at run time for the available GPU, with a function that replaces it on the CPU.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

//[jit_kernel
constexpr const char* source = R"(
template <class T>
__global__ void clamp(const T* x, T* y, T low, T high, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}
)";

// The whole grid in one call.
void clamp_on_cpu(const ca::jit::launch_shape&, const float* x, float* y, float low, float high, std::uint32_t n)
{
    std::transform(x, x + n, y, [=](float v) { return std::clamp(v, low, high); });
}

asio::awaitable<ca::result<std::vector<float>>> clamp(ca::device gpu, const std::vector<float>& data)
{
    ca::jit::compile_options options("clamp<float>");
    options.host(&clamp_on_cpu);
    BOOST_OUTCOME_CO_TRY(auto kernel, co_await gpu.async_compile(source, options));

    const auto n = static_cast<std::uint32_t>(data.size());
    const ca::jit::launch_shape shape{.grid = {(n + 255) / 256}, .block = {256}};
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(data));
    BOOST_OUTCOME_CO_TRY(auto y, co_await gpu.async_alloc<float>(n));
    BOOST_OUTCOME_CO_TRYV(
        co_await gpu.async_exec(ca::jit::launch(kernel, shape, ca::in(x), ca::out(y), -1.0f, 1.0f, n)));
    co_return co_await gpu.async_download(y);
}
//]

//[compile_error
// What the compiler has to say is the message of the error.
asio::awaitable<ca::result<void>> mistake(ca::device gpu)
{
    ca::jit::compile_options options("oops");
    options.architecture(80);
    auto kernel = co_await gpu.async_compile("__global__ void oops() { return 1; }", options);
    if (!kernel && kernel.error() == ca::errc::compile_failed)
        std::cout << kernel.error().message() << '\n';
    co_return ca::success();
}
//]

asio::awaitable<ca::result<void>> run()
{
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const std::vector<float> data{-3, -0.5, 0.25, 7};
    BOOST_OUTCOME_CO_TRY(auto got, co_await clamp(gpu, data));
    for (const float x : got)
        std::cout << x << ' ';
    std::cout << '\n';
    BOOST_OUTCOME_CO_TRYV(co_await mistake(gpu));
    if (got != std::vector<float>{-1, -0.5, 0.25, 1})
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
