#include "fault_kernels.hpp"
#include "isolated.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

// Real faults in worker processes, which this process and its other devices survive.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using namespace test;
using namespace test::isolated;

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("a fault fails each outstanding op once and disturbs no other device")
{
    world w;
    // One in a worker process, one in this process.
    bystander by(w.io, w.make(isolated_options()));
    bystander here(w.io, w.make(test::gpu_options()));
    for (const int standby : {0, 1}) {
        const auto gpu = w.make(isolated_options(standby));
        const auto spin = compile(w.io, gpu, fault_kernels, "spin");
        const auto touch = compile(w.io, gpu, fault_kernels, "touch");
        for (const std::string fault : {"illegal_address", "trap", "misaligned"}) {
            CAPTURE(standby);
            CAPTURE(fault);
            const auto kernel = compile(w.io, gpu, fault_kernels, fault.c_str());
            auto x = await(w.io, gpu.async_alloc<float>(1024, memory_init::zero)).value();
            const std::vector<float> host(1024, 1.0f);
            std::vector<float> back(1024);
            const auto g = gpu.status().generation;
            const int process = w.process_of(gpu);
            answers before, culprit, behind;
            gpu.async_exec(jit::launch(spin, {}, 50'000'000ull), before.handler());
            // A bad write may be reported only after its kernel has completed without error.
            gpu.async_exec(jit::launch(kernel, {}, inout(x)), culprit.handler());
            for (int i = 0; i < 20; ++i) {
                gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(x)), behind.handler());
                gpu.async_exec(memory::fill<float>{.dst = x, .value = 1}, behind.handler());
            }
            gpu.async_write(x, std::span<const float>(host), behind.handler());
            gpu.async_read(x, std::span<float>(back), behind.handler());
            gpu.async_download(x, behind.handler());
            run_until(w.io, [&] { return before.all() == 1 && culprit.all() == 1 && behind.all() == 43; });
            CHECK(before.other + culprit.other == 0);
            CHECK(behind.lost == 43);
            REQUIRE(behind.first_loss.has_value());
            const auto recovered = w.recover(gpu);
            MESSAGE(fault << ", standby " << standby << ": first success "
                          << milliseconds(recovered - *behind.first_loss) << " ms after the first op was told");
            CHECK(gpu.status().generation == g + 1);
            CHECK(is_context_lost(gpu.status().reason));
            CHECK(w.process_of(gpu) != process);
            CHECK(await(w.io, gpu.async_exec(memory::fill<float>{.dst = x, .value = 1})).error() == errc::stale_ref);
            w.expect_copies(gpu);
            // The same kernel, in the next worker.
            auto y = await(w.io, gpu.async_alloc<float>(256, memory_init::zero)).value();
            REQUIRE(await(w.io, gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(y)))));
            CHECK(await(w.io, gpu.async_download(y)).value() == std::vector<float>(256, 1.0f));
            CHECK(before.all() + culprit.all() + behind.all() == 45);
            by.check();
            here.check();
        }
    }
}

/// Waits until the GPU has as much free memory as before, with a tolerance for memory that the driver keeps.
void expect_memory_back(world& w, const device& observer, std::uint64_t level)
{
    constexpr std::uint64_t tolerance = std::uint64_t(300) << 20;
    // The driver needs some time to clean up after a process.
    const auto end = clock_type::now() + 5s;
    auto now = w.free_memory(observer);
    while (now + tolerance < level && clock_type::now() < end)
        now = w.free_memory(observer);
    MESSAGE("free: " << (level >> 20) << " MiB before, " << (now >> 20) << " MiB after");
    CHECK(now + tolerance >= level);
}

TEST_CASE("a hundred faults in a row leave no GPU memory behind")
{
    world w;
    const auto other = w.make(isolated_options());
    bystander by(w.io, other);
    // Until it has used all its lanes, each of which has its own handle and workspace.
    for (int n = 0; n < 4; ++n)
        by.check();
    const auto level = w.free_memory(other);
    REQUIRE(level > 0);
    {
        const auto gpu = w.make(isolated_options(1));
        std::vector<jit::kernel> kernels;
        for (const char* fault : {"illegal_address", "trap", "misaligned"})
            kernels.push_back(compile(w.io, gpu, fault_kernels, fault));
        clock_type::duration sum{}, longest{};
        for (generation g = 1; g <= 100; ++g) {
            CAPTURE(g);
            auto x = await(w.io, gpu.async_alloc<float>(std::size_t(1) << 20));
            REQUIRE(x);
            answers got;
            gpu.async_exec(jit::launch(kernels[g % kernels.size()], {}, inout(x.value())), got.handler());
            gpu.async_exec(memory::fill<float>{.dst = x.value(), .value = 1}, got.handler());
            run_until(w.io, [&] { return got.all() == 2; });
            CHECK(got.other == 0);
            REQUIRE(got.first_loss.has_value());
            const auto taken = w.recover(gpu) - *got.first_loss;
            sum += taken;
            longest = std::max(longest, taken);
            CHECK(gpu.status().generation == g + 1);
        }
        MESSAGE("100 faults: first success after " << milliseconds(sum) / 100 << " ms on average, at most "
                                                   << milliseconds(longest) << " ms");
        w.expect_copies(gpu);
        by.check();
        REQUIRE(await(w.io, gpu.async_shutdown()));
    }
    expect_memory_back(w, other, level);
    by.check();
}

/// A device whose worker is killed as soon as it works.
class mortal {
public:
    explicit mortal(const device& gpu) : gpu_(gpu) {}

    void die(int times)
    {
        left_ = times;
        next();
    }
    int left() const { return left_; }

private:
    void next()
    {
        gpu_.async_alloc<float>(std::size_t(1) << 20, [this](error_code ec, buffer<float> made) {
            if (ec) {
                CHECK_MESSAGE(is_context_lost(ec), ec.message());
                return next();
            }
            // The memory is freed with its worker.
            kept_ = std::move(made);
            kill();
        });
    }

    void kill()
    {
        gpu_.async_stats([this](error_code ec, const device_stats& stats) {
            if (!ec && ::kill(stats.hardware.process, SIGKILL) == 0)
                --left_;
            if (left_ > 0)
                next();
        });
    }

    device gpu_;
    buffer<float> kept_;
    int left_ = 0;
};

TEST_CASE("workers that die one after another leave no GPU memory behind")
{
    // The driver creates one context at a time, so a thousand restarts take minutes. They run only on request.
    const char* const wanted = std::getenv("COACCEL_TEST_RESTARTS");
    const int total = wanted ? std::atoi(wanted) : 100;
    constexpr int at_once = 10;
    const int each = total / at_once;
    world w;
    const auto other = w.make(isolated_options());
    bystander by(w.io, other);
    // Until it has used all its lanes, each of which has its own handle and workspace.
    for (int n = 0; n < 4; ++n)
        by.check();
    const auto level = w.free_memory(other);
    const auto began = clock_type::now();
    {
        std::vector<device> gpus;
        std::vector<std::unique_ptr<mortal>> all;
        for (int i = 0; i < at_once; ++i) {
            gpus.push_back(w.make(isolated_options()));
            all.push_back(std::make_unique<mortal>(gpus.back()));
            all.back()->die(each);
        }
        for (int left = each - 1; left >= 0; --left)
            for (const auto& m : all)
                run_until(w.io, [&] { return m->left() <= left; });
        for (const auto& gpu : gpus) {
            w.recover(gpu);
            CHECK(gpu.status().generation == static_cast<generation>(each) + 1);
            w.expect_copies(gpu);
        }
        by.check();
        for (const auto& gpu : gpus)
            REQUIRE(await(w.io, gpu.async_shutdown()));
    }
    MESSAGE("restarts: " << at_once * each << " in " << milliseconds(clock_type::now() - began) / 1000 << " s");
    expect_memory_back(w, other, level);
    by.check();
}

TEST_SUITE_END();

} // namespace
