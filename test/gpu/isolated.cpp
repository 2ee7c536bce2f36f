#include "isolated.hpp"

#include "child.hpp"
#include "fault_kernels.hpp"
#include "support/example_plans.hpp"

#include <csignal>
#include <fstream>
#include <iostream>

// GPUs in worker processes, in which kernels and drivers may hang.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using namespace test;
using namespace test::isolated;

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("a GPU in a worker process works like one in this process")
{
    world w;
    const auto gpu = w.make(isolated_options());
    CHECK(w.process_of(gpu) > 0);
    const auto a = matrix(1), b = matrix(2);
    auto da = await(w.io, gpu.async_upload(a)).value();
    auto db = await(w.io, gpu.async_upload(b)).value();
    auto dc = await(w.io, gpu.async_alloc<float>(side * side)).value();
    const blas::gemm<float> op{.a = da, .b = db, .c = dc, .m = side, .n = side, .k = side};
    REQUIRE(await(w.io, gpu.async_exec(op)));
    const auto wanted = product(a, b);
    CHECK(await(w.io, gpu.async_download(dc)).value() == wanted);
    CHECK(await(w.io, gpu.async_exec(blas::asum<float>{.x = da, .n = 13})).value() == 78.0f);

    const auto touch = compile(w.io, gpu, fault_kernels, "touch");
    REQUIRE(await(w.io, gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(dc)))));
    const auto touched = await(w.io, gpu.async_download(dc)).value();
    CHECK(touched[255] == wanted[255] + 1);
    CHECK(touched[256] == wanted[256]);

    // More than the staging memory holds at once.
    std::vector<float> large(40'000'000);
    for (std::size_t i = 0; i < large.size(); ++i)
        large[i] = static_cast<float>(i % 8191);
    auto dl = await(w.io, gpu.async_upload(large)).value();
    CHECK(await(w.io, gpu.async_download(dl)).value() == large);
}

TEST_CASE("a standby has the plans of its device when it takes over")
{
    world w;
    const auto gpu = w.make(isolated_options(1));
    const auto made = await(w.io, gpu.async_load(test::axpy_plan()));
    REQUIRE(made);
    const auto stats = [&] { return await(w.io, gpu.async_stats()).value(); };
    for (const generation g : {generation(2), generation(3)}) {
        run_until(w.io, [&] { return stats().standby_plans == 1; });
        const auto before = stats().plan_instances;
        REQUIRE(::kill(w.process_of(gpu), SIGKILL) == 0);
        run_until(w.io, [&] { return gpu.status().generation == g; });
        const std::vector<float> x(test::plan_elements, 1);
        std::vector<float> y(test::plan_elements);
        REQUIRE(await(w.io, made.value().async_run(from(x), to(y))));
        CHECK(y == test::expected(x));
        CHECK(stats().plan_instances == before);
    }
}

TEST_CASE("a standby has the cuBLAS handles of all lanes when it takes over")
{
    world w;
    auto o = isolated_options(1);
    const auto gpu = w.make(o);
    REQUIRE(::kill(w.process_of(gpu), SIGKILL) == 0);
    (void)w.recover(gpu);
    const auto memory = await(w.io, gpu.async_stats()).value().memory;
    const auto lanes = static_cast<std::uint64_t>(o.context.lanes.count);
    CHECK(memory.library_objects == lanes);
    // Each handle has a workspace; nothing else has allocated memory of that size.
    CHECK(memory.used >= lanes * o.cuda.blas_workspace);
}

TEST_CASE("a worker with a hanging kernel is killed and replaced")
{
    world w;
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options(standby);
        o.context.hang_timeout = 300ms;
        const auto gpu = w.make(o);
        const auto spin = compile(w.io, gpu, fault_kernels, "spin");
        // Load the kernel first, because that alone may take a while.
        REQUIRE(await(w.io, gpu.async_exec(jit::launch(spin, {}, 1ull))));
        answers got;
        const auto began = clock_type::now();
        gpu.async_exec(jit::launch(spin, {}, 200'000'000'000ull), got.handler());
        run_until(w.io, [&] { return got.all() == 1; });
        CHECK(got.lost == 1);
        const auto told = clock_type::now();
        CHECK(told - began > 290ms);
        CHECK(told - began < 3s);
        const auto recovered = w.recover(gpu);
        MESSAGE("hang, standby " << standby << ": told after " << milliseconds(told - began) << " ms, first success "
                                 << milliseconds(recovered - told) << " ms later");
        CHECK(gpu.status().generation == 2);
        w.expect_copies(gpu);
    }
}

TEST_CASE("a stopped worker is killed and replaced")
{
    world w;
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options(standby);
        o.worker.heartbeat = 500ms;
        const auto gpu = w.make(o);
        auto x = await(w.io, gpu.async_alloc<float>(1024)).value();
        const int process = w.process_of(gpu);
        const auto began = clock_type::now();
        REQUIRE(::kill(process, SIGSTOP) == 0);
        answers got;
        gpu.async_exec(memory::fill<float>{.dst = x, .value = 1}, got.handler());
        run_until(w.io, [&] { return got.all() == 1; });
        CHECK(got.lost == 1);
        const auto told = clock_type::now();
        CHECK(told - began < 3s);
        const auto recovered = w.recover(gpu);
        MESSAGE("stopped, standby " << standby << ": told after " << milliseconds(told - began) << " ms, first success "
                                    << milliseconds(recovered - told) << " ms later");
        CHECK(gpu.status().reason == errc::worker_hung);
        CHECK(w.process_of(gpu) != process);
        w.expect_copies(gpu);
    }
}

bool has_loaded(std::string_view library)
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(library) != std::string::npos)
            return true;
    return false;
}

// Runs in its own process, because other cases of this program load the driver.
int untouched_child(const std::vector<std::string>&)
{
    {
        world w;
        const auto gpu = w.make(isolated_options(1));
        auto x = await(w.io, gpu.async_upload(std::vector<float>(256, 1.0f))).value();
        REQUIRE(await(w.io, gpu.async_exec(blas::scal<float>{.x = x, .n = 256, .alpha = 2})));
        const auto touch = compile(w.io, gpu, fault_kernels, "touch");
        REQUIRE(await(w.io, gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(x)))));
        REQUIRE(await(w.io, gpu.async_download(x)).value() == std::vector<float>(256, 3.0f));
        REQUIRE(::kill(w.process_of(gpu), SIGKILL) == 0);
        run_until(w.io, [&] { return gpu.status().generation == 2; });
        w.expect_copies(gpu);
    }
    int found = 0;
    for (const char* library : {"libcuda.so", "libcublas", "libcudart"})
        if (has_loaded(library)) {
            std::cout << library << " is in this process\n";
            ++found;
        }
    return found;
}

const test::child registered("isolated_untouched", &untouched_child);

TEST_CASE("a process with isolated devices only does not load CUDA")
{
    std::string output;
    CHECK_MESSAGE(test::run_child("isolated_untouched", {}, output) == 0, output);
}

TEST_SUITE_END();

} // namespace
