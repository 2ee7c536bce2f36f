#include "gpu.hpp"
#include "isolated.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <cstdint>

// Arguments of runs on a GPU, in this process and in a worker: copied by kernels, from ordinary and from pinned memory.
namespace test_gpu_plan_arguments {
namespace {

using namespace coaccel;
using test::await;

using bytes = std::vector<std::uint8_t>;

/// Two inputs of n bytes, copied crosswise to two outputs.
plan make_plan(asio::io_context& io, const device& gpu, std::size_t n)
{
    plan_builder b("cross");
    const auto a = b.input<std::uint8_t>(n);
    const auto c = b.input<std::uint8_t>(n);
    const auto y = b.output<std::uint8_t>(n);
    const auto z = b.output<std::uint8_t>(n);
    b.add(memory::copy<std::uint8_t>{a, z});
    b.add(memory::copy<std::uint8_t>{c, y});
    auto made = await(io, gpu.async_load(b.finish().value()));
    REQUIRE_MESSAGE(made, (made ? std::string() : made.error().message()));
    return std::move(made).value();
}

void fill(std::span<std::uint8_t> to, unsigned seed)
{
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = static_cast<std::uint8_t>((i * 2654435761u + seed) >> 13);
}

void check(asio::io_context& io, const device& gpu)
{
    // Around what a thread and a block of the kernel copy, and around the limits for direct and for staged arguments.
    for (const std::size_t n : {1u, 15u, 16u, 17u, 4095u, 4096u, 4097u, 65535u, 65536u, 65537u, 262143u, 262144u}) {
        CAPTURE(n);
        const plan p = make_plan(io, gpu, n);
        auto pinned_in = await(io, gpu.async_alloc_pinned<std::uint8_t>(n)).value();
        auto pinned_out = await(io, gpu.async_alloc_pinned<std::uint8_t>(n)).value();
        for (unsigned round = 0; round < 6; ++round) {
            CAPTURE(round);
            bytes a(n), c(n), y(n), z(n);
            // Pinned and ordinary in turn, also one of each.
            const bool direct_in = round % 3 != 0;
            const bool direct_out = round % 2 != 0;
            const std::span first = direct_in ? std::span(pinned_in.span()) : std::span(a);
            const std::span last = direct_out ? std::span(pinned_out.span()) : std::span(z);
            fill(first, round);
            fill(c, ~round);
            std::ranges::fill(last, std::uint8_t{0xee});
            const auto done = await(io, p.async_run(from(first), from(c), to(y), to(last)));
            REQUIRE_MESSAGE(done, (done ? std::string() : done.error().message()));
            CHECK(std::ranges::equal(first, last));
            CHECK(c == y);
        }
        CHECK(await(io, p.async_unload()));
    }
}

TEST_SUITE_BEGIN("gpu plan arguments");

TEST_CASE("arguments of every size, in this process")
{
    test::gpu_fixture f;
    check(f.io, f.gpu);
}

TEST_CASE("arguments of every size, in a worker")
{
    test::isolated::world w;
    const auto gpu = w.make(test::isolated::isolated_options(0));
    check(w.io, gpu);
}

TEST_SUITE_END();

} // namespace
} // namespace test_gpu_plan_arguments
