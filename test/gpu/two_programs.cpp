#include "child.hpp"
#include "isolated.hpp"

#include <coaccel/plan/plan_builder.hpp>

#include <array>
#include <future>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

// Two programs with isolated devices on one GPU, each of which causes faults of its own.
namespace {

using namespace coaccel;
using namespace test::isolated;
using test::await;

constexpr std::size_t count = 32;
constexpr int faults = 8;
constexpr float poison = 1;

constexpr const char* source = R"(
extern "C" __global__ void twice(const float* x, float* y)
{
    if (x[0] == 1.0f)
        y[1ull << 44] = 1.0f;
    y[threadIdx.x] = 2.0f * x[threadIdx.x];
}
)";

struct one_run {
    std::vector<float> x = std::vector<float>(count, 3.0f);
    std::vector<float> y = std::vector<float>(count, -1.0f);
    error_code ec;
    bool ended = false;
};

result<plan> load(asio::io_context& io, const device& gpu)
{
    BOOST_OUTCOME_TRY(const auto kernel, await(io, gpu.async_compile(source, jit::compile_options("twice"))));
    plan_builder b("twice");
    const auto x = b.input<float>(count);
    const auto y = b.output<float>(count);
    b.add(pure(jit::launch(kernel, {.block = {count}}, in(x), out(y))));
    BOOST_OUTCOME_TRY(const auto described, b.finish());
    return await(io, gpu.async_load(described, {.instances = 8, .poison_limit = 1000}));
}

/// Returns what went wrong; empty: each poisoned run got an error, and no other run.
std::string run_beside_faults()
{
    asio::io_context io(1);
    auto made = await(io, device::async_create(io.get_executor(), isolated_options(1)));
    if (!made)
        return made.error().message();
    const device gpu = made.value();
    const auto loaded = load(io, gpu);
    if (!loaded)
        return loaded.error().message();
    for (int round = 0; round < faults; ++round) {
        std::array<one_run, 11> runs;
        runs[5].x[0] = poison;
        for (one_run& r : runs)
            loaded.value().async_run(from(r.x), to(r.y), [&r](error_code ec) {
                r.ec = ec;
                r.ended = true;
            });
        test::run_until(io, [&] { return std::ranges::all_of(runs, &one_run::ended); });
        for (const one_run& r : runs) {
            if (&r == &runs[5] ? r.ec != errc::context_lost : bool(r.ec))
                return "round " + std::to_string(round) + ": " + r.ec.message();
            if (!r.ec && r.y != std::vector<float>(count, 6.0f))
                return "round " + std::to_string(round) + ": a wrong result";
        }
    }
    const auto stats = await(io, gpu.async_stats());
    if (!stats || stats.value().convicted != faults)
        return "another number of convicted runs";
    const auto ended = await(io, gpu.async_shutdown());
    return ended ? std::string() : ended.error().message();
}

int program(const std::vector<std::string>&)
{
    const auto wrong = run_beside_faults();
    std::cout << wrong << '\n';
    return wrong.empty() ? 0 : 1;
}

const test::child registered("program_with_faults", &program);

} // namespace

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("two programs on one GPU do not see the faults of each other, and leave no memory behind")
{
    world w;
    const auto observer = w.make(test::gpu_options());
    const auto level = w.free_memory(observer);
    std::array<std::string, 2> outputs;
    std::array<std::future<int>, 2> programs;
    for (std::size_t i = 0; i < 2; ++i)
        programs[i] = std::async(std::launch::async,
                                 [&outputs, i] { return test::run_child("program_with_faults", {}, outputs[i]); });
    for (std::size_t i = 0; i < 2; ++i)
        CHECK_MESSAGE(programs[i].get() == 0, outputs[i]);
    // The driver keeps some memory after a fault.
    constexpr std::uint64_t tolerance = std::uint64_t(300) << 20;
    const auto end = clock_type::now() + 5s;
    while (w.free_memory(observer) + tolerance < level && clock_type::now() < end) {
    }
    CHECK(w.free_memory(observer) + tolerance >= level);
}

TEST_SUITE_END();
