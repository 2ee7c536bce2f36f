#include "gpu.hpp"

#include <algorithm>
#include <cuda.h>
#include <dlfcn.h>
#include <numeric>

namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;

device_stats stats_of(gpu_fixture& f)
{
    auto s = await(f.io, f.gpu.async_stats());
    REQUIRE(s);
    return std::move(s).value();
}

TEST_SUITE_BEGIN("gpu memory");

TEST_CASE("the statistics come from the driver")
{
    gpu_fixture f;
    auto b = f.alloc<std::uint8_t>(64u << 20);
    const auto s = stats_of(f);
    CHECK(s.backend == "cuda");
    CHECK_FALSE(s.hardware.name.empty());
    CHECK(s.hardware.compute_capability >= 70);
    CHECK(s.hardware.multiprocessors > 0);
    CHECK(s.memory.total > (1u << 30));
    CHECK(s.memory.free > 0);
    CHECK(s.memory.free < s.memory.total);
    CHECK(s.memory.used >= 64u << 20);
    CHECK(s.memory.reserved >= s.memory.used);
    CHECK(s.memory.high_water >= s.memory.used);
    CHECK(s.live_buffers == 1);
    b.reset();
    CHECK(stats_of(f).memory.used < 64u << 20);
}

TEST_CASE("released memory stays in the pool until it is trimmed")
{
    gpu_fixture f;
    f.alloc<std::uint8_t>(256u << 20).reset();
    const auto before = stats_of(f);
    CHECK(before.memory.reserved >= 256u << 20);
    REQUIRE(f.exec(memory::trim{}));
    CHECK(stats_of(f).memory.reserved < before.memory.reserved);
}

TEST_CASE("an allocation beyond the memory limit is an error, and released memory can be reused")
{
    auto o = test::gpu_options();
    o.cuda.memory_limit = 256u << 20;
    gpu_fixture f(o);
    auto b = f.alloc<std::uint8_t>(192u << 20);
    for (int i = 0; i < 3; ++i) {
        auto more = await(f.io, f.gpu.async_alloc<std::uint8_t>(128u << 20));
        REQUIRE_FALSE(more);
        CHECK(more.error() == errc::out_of_memory);
    }
    b.reset();
    CHECK(await(f.io, f.gpu.async_alloc<std::uint8_t>(128u << 20)));
}

TEST_CASE("an allocation beyond the GPU's memory is out of memory, and the device continues")
{
    gpu_fixture f;
    auto huge = await(f.io, f.gpu.async_alloc<std::uint8_t>(std::size_t(1) << 44));
    REQUIRE_FALSE(huge);
    CHECK(huge.error() == errc::out_of_memory);
    CHECK(f.download(f.upload(std::vector<int>{1, 2, 3}).ref()) == std::vector<int>{1, 2, 3});
}

TEST_CASE("managed memory is shared by the host and the GPU")
{
    gpu_fixture f;
    auto made = await(f.io, f.gpu.async_alloc_managed<float>(10000));
    REQUIRE(made);
    auto m = std::move(made).value();
    std::iota(m.span().begin(), m.span().end(), 0.0f);
    CHECK(f.exec(memory::advise<float>{.target = m.ref(), .what = memory::advice::prefer_device}));
    CHECK(f.exec(memory::prefetch<float>{.target = m.ref(), .to = memory::place::device}));
    REQUIRE(f.exec(blas::scal<float>{.x = m.ref(), .n = 10000, .alpha = 2}));
    CHECK(f.exec(memory::prefetch<float>{.target = m.ref(), .to = memory::place::host}));
    CHECK(m.span()[9999] == 19998.0f);

    // An op may still use the buffer when it is released.
    f.gpu.async_exec(blas::scal<float>{.x = m.ref(), .n = 10000, .alpha = 2}, [](error_code ec) { CHECK_FALSE(ec); });
    m.reset();
    auto next = await(f.io, f.gpu.async_alloc_managed<float>(10000));
    CHECK(next);
}

TEST_CASE("advice about unmanaged memory is refused by the driver or does no harm")
{
    gpu_fixture f;
    auto b = f.alloc<float>(1000);
    auto r = f.exec(memory::advise<float>{.target = b, .what = memory::advice::read_mostly});
    if (!r)
        CHECK(r.error().category().name() == std::string("coaccel.cuda"));
    CHECK(f.download(f.upload(std::vector<int>{1}).ref()) == std::vector<int>{1});
}

TEST_CASE("an allocation at the pinned limit waits, and pinned memory outlives its device")
{
    auto o = test::gpu_options();
    o.cuda.pinned_limit = 64u << 20;
    auto f = std::make_unique<gpu_fixture>(o);
    auto first = await(f->io, f->gpu.async_alloc_pinned<std::uint8_t>(48u << 20));
    REQUIRE(first);
    CHECK(await(f->io, f->gpu.async_alloc_pinned<std::uint8_t>(65u << 20)).error() == errc::out_of_memory);
    bool served = false;
    pinned_buffer<std::uint8_t> second;
    f->gpu.async_alloc_pinned<std::uint8_t>(32u << 20, [&](error_code ec, pinned_buffer<std::uint8_t> b) {
        CHECK_FALSE(ec);
        second = std::move(b);
        served = true;
    });
    auto after = await(f->io, f->gpu.async_stats());
    CHECK_FALSE(served);
    first.value().reset();
    test::run_until(f->io, [&] { return served; });
    f.reset();
    std::ranges::fill(second, std::uint8_t{7});
    CHECK(second[second.size() - 1] == 7);
}

TEST_CASE("several devices on one GPU work concurrently")
{
    asio::io_context io{1};
    std::vector<device> devices;
    for (int i = 0; i < 3; ++i)
        devices.push_back(test::make_device(io, test::gpu_options()));
    std::vector<buffer<float>> buffers;
    int ended = 0;
    for (auto& d : devices)
        buffers.push_back(await(io, d.async_alloc<float>(1000)).value());
    for (int i = 0; i < 100; ++i)
        for (std::size_t d = 0; d < devices.size(); ++d)
            devices[d].async_exec(memory::fill<float>{.dst = buffers[d], .value = static_cast<float>(d)},
                                  [&](error_code ec) {
                                      CHECK_FALSE(ec);
                                      ++ended;
                                  });
    test::run_until(io, [&] { return ended == 300; });
    for (std::size_t d = 0; d < devices.size(); ++d)
        CHECK(await(io, devices[d].async_download(buffers[d])).value()[999] == static_cast<float>(d));
    CHECK(await(io, devices[0].async_exec(memory::fill<float>{.dst = buffers[1]})).error() == errc::wrong_device);
    buffers.clear();
    devices.clear();
    test::run_out(io);
}

// As a function does that calls cudaSetDevice.
struct change_context {
    decltype(&::cuCtxSetCurrent) set;

    void operator()(native_stream, std::span<float>) const { CHECK(set(nullptr) == CUDA_SUCCESS); }
};

TEST_CASE("a user's function may change the current context")
{
    gpu_fixture f;
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    REQUIRE(driver);
    const change_context careless{reinterpret_cast<decltype(&::cuCtxSetCurrent)>(::dlsym(driver, "cuCtxSetCurrent"))};
    REQUIRE(bool(careless.set));
    const auto x = f.alloc<float>(16);
    int ended = 0;
    for (int i = 0; i < 10; ++i) {
        f.gpu.async_submit(inout(x), careless, [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
        f.gpu.async_exec(memory::fill<float>{.dst = x, .value = 3}, [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
    }
    test::run_until(f.io, [&] { return ended == 20; });
    CHECK(await(f.io, f.gpu.async_download(x)).value() == std::vector<float>(16, 3.0f));
    ::dlclose(driver);
}

TEST_SUITE_END();

} // namespace
