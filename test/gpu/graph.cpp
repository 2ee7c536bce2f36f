#include "gpu.hpp"
#include "support/numbers.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <vector>

// Graphs over existing buffers on a GPU, with kernels of cuBLAS that depend on the alignment of their operands.
namespace {

using namespace coaccel;
using test::await;
using test::numbers;

TEST_SUITE_BEGIN("graph");

TEST_CASE("a chain of gemv over parts of buffers gives what single ops give, run after run")
{
    test::gpu_fixture f;
    constexpr std::size_t n = 256;
    std::vector<float> matrix(n * n + 1);
    // Twice the identity, with its rows in reverse order, from the second element on.
    for (std::size_t i = 0; i < n; ++i)
        matrix[1 + i * n + (n - 1 - i)] = 2;
    const auto a = f.upload(matrix);
    const auto x = f.upload(numbers(n + 1));
    const auto t = f.upload(std::vector<float>(2 * n + 1));
    const auto y = f.upload(std::vector<float>(n));
    const auto weights = a.subspan(1, n * n);
    const auto middle = t.subspan(n + 1, n);
    const auto made = await(
        f.io, f.gpu.async_record(seq(blas::gemv<float>{.a = weights, .x = x.subspan(1, n), .y = middle, .m = n, .n = n},
                                     blas::gemv<float>{.a = weights, .x = middle, .y = y, .m = n, .n = n},
                                     blas::axpy<float>{.x = y, .y = x.subspan(1, n), .n = n, .alpha = 1})));
    REQUIRE_MESSAGE(made, made.error().message());
    // Recording has computed nothing.
    CHECK(f.download(x) == numbers(n + 1));
    CHECK(f.download(y) == std::vector<float>(n));
    constexpr int runs = 5;
    int ended = 0;
    for (int i = 0; i < runs; ++i)
        f.gpu.async_exec(made.value(), [&](error_code ec) {
            CHECK_MESSAGE(!ec, ec.message());
            ++ended;
        });
    // Behind the runs, without waiting for them. Each run makes x five times as large.
    auto wanted = numbers(n + 1);
    for (std::size_t i = 1; i <= n; ++i)
        wanted[i] *= 3125;
    CHECK(f.download(x) == wanted);
    test::run_until(f.io, [&] { return ended == runs; });
    CHECK(await(f.io, made.value().async_release()));
}

TEST_SUITE_END();

} // namespace
