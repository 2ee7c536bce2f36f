// Shares GPU memory with code that uses the CUDA runtime: its memory becomes a buffer, and events order the work of
// both sides on the GPU.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <cuda_runtime_api.h>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

void check(cudaError_t e)
{
    if (e != cudaSuccess)
        throw std::runtime_error(std::string("CUDA runtime: ") + cudaGetErrorString(e));
}

// Code that knows nothing of coaccel: a stream, device memory and an event of its own.
struct other_code {
    explicit other_code(std::size_t n) : count(n)
    {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&scaled, cudaEventDisableTiming));
        void* p = nullptr;
        check(cudaMalloc(&p, n * sizeof(float)));
        // The memory is freed when its last owner is destroyed.
        memory = std::shared_ptr<float>(static_cast<float*>(p), [](float* m) { (void)cudaFree(m); });
    }
    other_code(const other_code&) = delete;
    other_code& operator=(const other_code&) = delete;

    ~other_code()
    {
        (void)cudaStreamSynchronize(stream);
        (void)cudaEventDestroy(written);
        (void)cudaEventDestroy(scaled);
        (void)cudaStreamDestroy(stream);
    }

    void write(const std::vector<float>& data)
    {
        check(cudaMemcpyAsync(memory.get(), data.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream));
        check(cudaEventRecord(written, stream));
    }

    // After the event `scaled`.
    std::vector<float> read()
    {
        std::vector<float> data(count);
        check(cudaStreamWaitEvent(stream, scaled, 0));
        check(cudaMemcpyAsync(data.data(), memory.get(), count * sizeof(float), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        return data;
    }

    std::size_t count;
    cudaStream_t stream = nullptr;
    cudaEvent_t written = nullptr;
    cudaEvent_t scaled = nullptr;
    std::shared_ptr<float> memory;
};

void report(ca::error_code ec)
{
    if (ec)
        std::cerr << ec.message() << '\n';
}

//[cuda_interop
asio::awaitable<ca::result<void>> scale(ca::device gpu, other_code& other)
{
    // `memory` is kept until the buffer is released and no operation uses it.
    BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_adopt(other.memory.get(), other.count, other.memory));
    // Not awaited: the GPU waits for the event `written` of the other code, no thread does.
    gpu.async_exec(ca::seq(ca::interop::wait_event<float>{.event = other.written, .data = x},
                           ca::blas::scal<float>{.x = x, .n = x.size(), .alpha = 2}),
                   &report);
    // Completes when the record is on its stream: from here on, the other code can wait for `scaled`.
    co_return co_await gpu.async_exec(ca::interop::record_event<float>{.event = other.scaled, .data = x});
}
//]

//[cuda_stream
// Work of the CUDA runtime as an operation: it gets the stream, and the address of the buffer on the GPU.
void clear(ca::native_stream stream, std::span<float> x)
{
    check(cudaMemsetAsync(x.data(), 0, x.size_bytes(), static_cast<cudaStream_t>(stream.handle)));
}
//]

asio::awaitable<ca::result<bool>> run()
{
    ca::device_options options;
    options.kind = ca::device_kind::cuda;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    other_code other(4);
    other.write({1, 2, 3, 4});
    BOOST_OUTCOME_CO_TRYV(co_await scale(gpu, other));
    const auto doubled = other.read();
    for (const float v : doubled)
        std::cout << v << ' ';
    std::cout << '\n';

    BOOST_OUTCOME_CO_TRY(auto y, co_await gpu.async_upload(doubled));
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_submit(ca::inout(y), &clear));
    BOOST_OUTCOME_CO_TRY(auto zeros, co_await gpu.async_download(y));
    co_return doubled == std::vector<float>{2, 4, 6, 8} && zeros == std::vector<float>(4, 0.0f);
}

int main()
{
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        std::cout << "no GPU here\n";
        return 77;
    }
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto outcome = running.get();
    if (!outcome)
        std::cerr << outcome.error().message() << '\n';
    return outcome && outcome.value() ? 0 : 1;
}
