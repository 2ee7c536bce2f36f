#include "runtime_code.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Memory, events and streams that are shared with code of the CUDA runtime.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::gpu_fixture;
using test::runtime_code;

constexpr std::size_t n = 4096;

/// The float whose bytes are all `byte`.
float of_bytes(int byte)
{
    float f = 0;
    std::memset(&f, byte, sizeof f);
    return f;
}

/// An op that blocks its stream for about 50 ms or more.
struct slow {
    explicit slow(gpu_fixture& f) : kernel(test::compile(f.io, f.gpu, test::fault_kernels, "spin")) {}

    auto op() const { return jit::launch(kernel, {}, 100'000'000ull); }

    jit::kernel kernel;
};

TEST_SUITE_BEGIN("gpu beside the CUDA runtime");

TEST_CASE("ops use memory of the runtime in place, and its owner frees it after them")
{
    gpu_fixture f;
    auto memory = runtime_code::allocate(n);
    const std::weak_ptr<float> alive = memory;
    CHECK(cudaMemset(memory.get(), 0, n * sizeof(float)) == cudaSuccess);
    auto x = await(f.io, f.gpu.async_adopt(memory.get(), n, memory)).value();
    CHECK(f.exec(memory::fill<float>{.dst = x.subspan(1, n - 2), .value = 3}));
    auto expected = std::vector<float>(n, 3.0f);
    expected.front() = expected.back() = 0;
    CHECK(runtime_code::content(memory.get(), n) == expected);
    CHECK(f.download(x) == expected);
    const auto sum = f.exec(blas::asum<float>{.x = x, .n = n});
    REQUIRE(sum);
    CHECK(sum.value() == 3.0f * (n - 2));
    memory.reset();
    CHECK_FALSE(alive.expired());
    x.reset();
    test::run_until(f.io, [&] { return alive.expired(); });
}

TEST_CASE("memory of every kind that the GPU can use is adopted")
{
    gpu_fixture f;
    runtime_code other;
    void* pooled = nullptr;
    void* managed = nullptr;
    REQUIRE(cudaMallocAsync(&pooled, n * sizeof(float), other.stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(other.stream) == cudaSuccess);
    REQUIRE(cudaMallocManaged(&managed, n * sizeof(float), cudaMemAttachGlobal) == cudaSuccess);
    for (void* memory : {pooled, managed}) {
        auto x = await(f.io, f.gpu.async_adopt(static_cast<float*>(memory), n, nullptr));
        REQUIRE_MESSAGE(x, (x ? std::string() : x.error().message()));
        CHECK(f.exec(memory::fill<float>{.dst = x.value(), .value = 5}));
        CHECK(f.download(x.value()) == std::vector<float>(n, 5.0f));
    }
    CHECK(cudaFreeAsync(pooled, other.stream) == cudaSuccess);
    CHECK(cudaFree(managed) == cudaSuccess);
}

TEST_CASE("memory that the GPU cannot use is refused")
{
    gpu_fixture f;
    const auto memory = runtime_code::allocate(n);
    const auto refusal = [&](float* p, std::size_t count) {
        return await(f.io, f.gpu.async_adopt(p, count, nullptr)).error();
    };
    CHECK(refusal(nullptr, 4) == errc::invalid_argument);
    CHECK(refusal(memory.get(), 0) == errc::invalid_argument);
    CHECK(refusal(reinterpret_cast<float*>(reinterpret_cast<char*>(memory.get()) + 2), 4) == errc::invalid_argument);
    // Beyond any rounding of the size.
    const auto beyond = refusal(memory.get(), std::size_t(1) << 34);
    CHECK(beyond == errc::out_of_bounds);
    CHECK(beyond.message().find("count is 17179869184") != std::string::npos);
    std::vector<float> ordinary(64);
    const auto unknown = refusal(ordinary.data(), 64);
    CHECK(unknown == errc::invalid_argument);
    MESSAGE(unknown.message());
    void* locked = nullptr;
    REQUIRE(cudaMallocHost(&locked, 4096) == cudaSuccess);
    const auto host = refusal(static_cast<float*>(locked), 64);
    CHECK(host == errc::invalid_argument);
    CHECK(host.message().find("host memory") != std::string::npos);
    CHECK(cudaFreeHost(locked) == cudaSuccess);
    CHECK(f.download(f.upload(ordinary)) == ordinary);
}

TEST_CASE("ops wait for an event of the runtime, on the GPU")
{
    gpu_fixture f;
    runtime_code other;
    const slow spin(f);
    const auto memory = runtime_code::allocate(n);
    auto x = await(f.io, f.gpu.async_adopt(memory.get(), n, nullptr)).value();
    auto y = f.alloc<float>(n);
    for (int i = 1; i <= 10; ++i) {
        // Our own slow work, then theirs behind it: the second event is late.
        f.gpu.with({.lane = 0}).async_exec(spin.op(), [](error_code ec) { CHECK_FALSE(ec); });
        const interop::record_event<float> record{.event = other.first, .data = y};
        CHECK(await(f.io, f.gpu.with({.lane = 0}).async_exec(record)));
        CHECK(cudaStreamWaitEvent(other.stream, other.first, 0) == cudaSuccess);
        other.set(memory.get(), i, n);
        CHECK(cudaEventRecord(other.second, other.stream) == cudaSuccess);
        error_code ec = errc::no_value;
        f.gpu.async_exec(
            seq(interop::wait_event<float>{.event = other.second, .data = x}, memory::copy<float>{.src = x, .dst = y}),
            [&](error_code e) { ec = e; });
        CHECK(f.download(y) == std::vector<float>(n, of_bytes(i)));
        CHECK_FALSE(ec);
    }
    // Waiting for an event that was not recorded does not block.
    cudaEvent_t fresh = nullptr;
    REQUIRE(cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming) == cudaSuccess);
    CHECK(f.exec(interop::wait_event<float>{.event = fresh, .data = x}));
    CHECK(cudaEventDestroy(fresh) == cudaSuccess);
    CHECK(cudaStreamSynchronize(other.stream) == cudaSuccess);
}

TEST_CASE("the runtime waits for ops by an event, which is recorded before they end")
{
    gpu_fixture f;
    runtime_code other;
    const slow spin(f);
    const auto memory = runtime_code::allocate(n);
    const auto seen = runtime_code::allocate(n);
    auto x = await(f.io, f.gpu.async_adopt(memory.get(), n, nullptr)).value();
    bool spun = false;
    // On one lane, so that the fill is behind the spinning kernel.
    f.gpu.with({.lane = 0}).async_exec(spin.op(), [&](error_code ec) {
        CHECK_FALSE(ec);
        spun = true;
    });
    f.gpu.with({.lane = 0}).async_exec(memory::fill<float>{.dst = x, .value = 8}, [](error_code ec) {
        CHECK_FALSE(ec);
    });
    CHECK(await(f.io, f.gpu.async_exec(interop::record_event<float>{.event = other.first, .data = x})));
    CHECK_FALSE(spun);
    CHECK(cudaStreamWaitEvent(other.stream, other.first, 0) == cudaSuccess);
    CHECK(cudaMemcpyAsync(seen.get(), memory.get(), n * sizeof(float), cudaMemcpyDeviceToDevice, other.stream) ==
          cudaSuccess);
    CHECK(cudaStreamSynchronize(other.stream) == cudaSuccess);
    CHECK(runtime_code::content(seen.get(), n) == std::vector<float>(n, 8.0f));
    test::run_until(f.io, [&] { return spun; });
}

void clear(native_stream s, std::span<float> x)
{
    CHECK(s.backend == "cuda");
    CHECK(cudaMemsetAsync(x.data(), 0, x.size_bytes(), static_cast<cudaStream_t>(s.handle)) == cudaSuccess);
}

TEST_CASE("code of the runtime uses the stream of a lane, in order with the ops")
{
    gpu_fixture f;
    auto x = f.upload(std::vector<float>(n, 1.0f));
    for (int i = 0; i < 50; ++i) {
        f.gpu.async_exec(memory::fill<float>{.dst = x, .value = 4}, [](error_code ec) { CHECK_FALSE(ec); });
        f.gpu.async_submit(inout(x), &clear, [](error_code ec) { CHECK_FALSE(ec); });
        f.gpu.async_exec(memory::fill<float>{.dst = x.subspan(0, 1), .value = 2},
                         [](error_code ec) { CHECK_FALSE(ec); });
        auto expected = std::vector<float>(n, 0.0f);
        expected[0] = 2;
        REQUIRE(f.download(x) == expected);
    }
}

TEST_SUITE_END();

} // namespace
