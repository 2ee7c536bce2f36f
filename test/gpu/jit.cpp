#include "gpu.hpp"

#include <numeric>

namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;

constexpr const char* source = R"(
#include <cuda_fp16.h>
#include <cuda/std/cstdint>

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

namespace own {
template <class T>
__global__ void scale(T* x, T by, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * by;
}
}

extern "C" __global__ void last_of_shared(unsigned* out, unsigned words)
{
    extern __shared__ unsigned shared[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
        shared[i] = i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = shared[words - 1];
}

extern "C" __global__ void wait_for(unsigned long long clocks)
{
    const unsigned long long start = clock64();
    while (clock64() - start < clocks) {}
}
)";

TEST_SUITE_BEGIN("gpu jit");

TEST_CASE("kernels are compiled, cached and run")
{
    gpu_fixture f;
    std::vector<float> x(10001), y(10001, 1);
    std::iota(x.begin(), x.end(), 0.0f);
    auto dx = f.upload(x);
    auto dy = f.upload(y);
    const auto saxpy = test::compile(f.io, f.gpu, source, "saxpy");
    const jit::launch_shape shape{.grid = {40}, .block = {256}};
    REQUIRE(f.exec(jit::launch(saxpy, shape, 2.0f, in(dx), inout(dy), 10001u)));
    const auto got = f.download(dy.ref());
    for (std::size_t i = 0; i < x.size(); ++i)
        REQUIRE(got[i] == 2 * x[i] + 1);

    const auto scale = test::compile(f.io, f.gpu, source, "own::scale<float>");
    REQUIRE(f.exec(jit::launch(scale, shape, inout(dx), 3.0f, 10001u)));
    CHECK(f.download(dx.ref())[10000] == 30000.0f);

    const auto again = test::compile(f.io, f.gpu, source, "own::scale<float>");
    CHECK(again.from_cache());
    REQUIRE(f.exec(jit::launch(again, shape, inout(dx), 0.5f, 10001u)));
    CHECK(f.download(dx.ref())[10000] == 15000.0f);

    const auto scale_half = test::compile(f.io, f.gpu, source, "own::scale<__half>");
    auto h = f.upload(std::vector<half>(100, half(1.5f)));
    REQUIRE(f.exec(jit::launch(scale_half, shape, inout(h), half(2.0f), 100u)));
    CHECK(static_cast<float>(f.download(h.ref())[99]) == 3.0f);
}

TEST_CASE("a kernel may be released while it runs")
{
    gpu_fixture f;
    int ended = 0;
    for (int i = 0; i < 20; ++i) {
        auto wait = test::compile(f.io, f.gpu, source, "wait_for");
        f.gpu.async_exec(jit::launch(wait, {}, 2'000'000ull), [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
    }
    test::run_until(f.io, [&] { return ended == 20; });
}

TEST_CASE("wrong arguments and shapes are refused, and the device continues")
{
    gpu_fixture f;
    auto x = f.upload(std::vector<float>(256, 1));
    auto d = f.upload(std::vector<double>(256, 1));
    auto out_cell = f.alloc<std::uint32_t>(1);
    const auto saxpy = test::compile(f.io, f.gpu, source, "saxpy");
    const auto scale = test::compile(f.io, f.gpu, source, "own::scale<float>");
    const auto shared = test::compile(f.io, f.gpu, source, "last_of_shared");
    const jit::launch_shape one{.grid = {1}, .block = {256}};

    CHECK(f.exec(jit::launch(scale, one, inout(x), 2.0f)).error() == errc::argument_mismatch);
    CHECK(f.exec(jit::launch(scale, one, inout(d), 2.0f, 256u)).error() == errc::argument_mismatch);
    CHECK(f.exec(jit::launch(scale, one, inout(x), 2.0, 256u)).error() == errc::argument_mismatch);
    CHECK(f.exec(jit::launch(saxpy, one, 2.0f, inout(x), 256u)).error() == errc::argument_mismatch);
    CHECK(f.exec(jit::launch(saxpy, one, 2.0, in(x), inout(x), 256u)).error());

    CHECK(f.exec(jit::launch(scale, {.grid = {1}, .block = {2048}}, inout(x), 2.0f, 256u)).error() ==
          errc::invalid_launch);
    CHECK(f.exec(jit::launch(scale, {.grid = {1, 70000}, .block = {1}}, inout(x), 2.0f, 256u)).error() ==
          errc::invalid_launch);
    CHECK(f.exec(jit::launch(scale, {.grid = {0}, .block = {1}}, inout(x), 2.0f, 256u)).error() ==
          errc::invalid_launch);
    CHECK(f.exec(jit::launch(shared, {.grid = {1}, .block = {32}, .shared_bytes = 1u << 24}, out(out_cell), 4u))
              .error() == errc::invalid_launch);

    // More shared memory than the default limit of a kernel, and less than the device has.
    CHECK(f.exec(jit::launch(shared, {.grid = {1}, .block = {32}, .shared_bytes = 100000}, out(out_cell), 25000u)));
    CHECK(f.download(out_cell.ref()).front() == 24999);
    CHECK(f.download(x.ref()) == std::vector<float>(256, 1));
}

TEST_CASE("the error message of a failed compilation is the compiler's log")
{
    gpu_fixture f;
    auto made =
        await(f.io, f.gpu.async_compile("extern \"C\" __global__ void k() { oops; }", jit::compile_options("k")));
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::compile_failed);
    CHECK(made.error().message().find("oops") != std::string::npos);
}

TEST_CASE("the occupancy of a kernel is positive")
{
    gpu_fixture f;
    const auto saxpy = test::compile(f.io, f.gpu, source, "saxpy");
    auto o = f.exec(jit::occupancy(saxpy));
    REQUIRE(o);
    CHECK(o.value().block_size >= 128);
    CHECK(o.value().min_grid_size >= 1);
    CHECK(o.value().blocks_per_multiprocessor >= 1);
}

TEST_SUITE_END();

} // namespace
