#include "isolated.hpp"

#include <coaccel/device/seq.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace test_integration_work {

using namespace coaccel;
using test::await;
using test::isolated_fixture;
using test::numbers;

TEST_SUITE_BEGIN("isolated device");

TEST_CASE("an isolated device works like any other, in another process")
{
    isolated_fixture f;
    CHECK(f.process() != 0);
    CHECK(f.process() != ::getpid());
    const auto stats = await(f.io, f.gpu.async_stats()).value();
    CHECK(stats.backend == "host");
    const auto x = f.upload(numbers(5));
    CHECK(await(f.io, f.gpu.async_exec(blas::dot<float>{x, x, 5})).value() == 55.0f);
    CHECK_FALSE(f.run(memory::fill<float>{x, 2.0f}));
    CHECK(f.download(x.ref()) == std::vector<float>(5, 2.0f));
    const auto zeroed = await(f.io, f.gpu.async_alloc<float>(1000, memory_init::zero)).value();
    CHECK(f.download(zeroed.ref()) == std::vector<float>(1000, 0.0f));
}

TEST_CASE("data of every size is read as it was written")
{
    isolated_fixture f;
    for (const std::size_t n : {1u, 1000u, 16384u, 16385u, 700'003u, 5'000'001u}) {
        CAPTURE(n);
        const auto data = numbers(n);
        const auto x = f.upload(data);
        CHECK(f.download(x.ref()) == data);
        std::vector<float> other(n, 7.0f);
        CHECK(await(f.io, f.gpu.async_write(x, std::span<const float>(other))));
        std::vector<float> back(n);
        CHECK(await(f.io, f.gpu.async_read(x, std::span<float>(back))));
        CHECK(back == other);
    }
}

TEST_CASE("ops on one buffer run in the order of their calls, including copies of all sizes")
{
    isolated_fixture f;
    constexpr std::size_t n = 2'000'000;
    const auto x = await(f.io, f.gpu.async_alloc<float>(n)).value();
    const auto y = await(f.io, f.gpu.async_alloc<float>(n)).value();
    const auto data = numbers(n);
    std::vector<float> first(n);
    std::vector<float> second(n);
    int ended = 0;
    const auto count = [&](error_code ec) {
        CHECK_FALSE(ec);
        ++ended;
    };
    f.gpu.async_write(x, std::span<const float>(data), count);
    f.gpu.async_exec(memory::copy<float>{x, y}, count);
    f.gpu.async_exec(memory::fill<float>{x, 3.0f}, count);
    f.gpu.async_read(y, std::span<float>(first), count);
    f.gpu.async_exec(memory::fill<float>{y, 4.0f}, count);
    f.gpu.async_read(x, std::span<float>(second), count);
    test::run_until(f.io, [&] { return ended == 6; });
    CHECK(first == data);
    CHECK(second == std::vector<float>(n, 3.0f));
    CHECK(f.download(y.ref()) == std::vector<float>(n, 4.0f));
}

TEST_CASE("a buffer released during a write is freed after the write")
{
    isolated_fixture f;
    const std::vector<float> data(3'000'000, 1.0f);
    int ended = 0;
    {
        auto x = await(f.io, f.gpu.async_alloc<float>(data.size())).value();
        f.gpu.async_write(x, std::span<const float>(data), [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
    }
    test::run_until(f.io, [&] { return ended == 1; });
    CHECK(await(f.io, f.gpu.async_stats()).value().live_buffers == 0);
    const auto y = f.upload(numbers(10));
    CHECK(f.download(y.ref()) == numbers(10));
}

TEST_CASE("pinned buffers are in the shared memory")
{
    isolated_fixture f;
    auto pinned = await(f.io, f.gpu.async_alloc_pinned<float>(100'000)).value();
    std::iota(pinned.span().begin(), pinned.span().end(), 1.0f);
    const auto x = await(f.io, f.gpu.async_alloc<float>(pinned.size())).value();
    CHECK(await(f.io, f.gpu.async_write(x, std::span<const float>(pinned.span()))));
    std::ranges::fill(pinned.span(), 0.0f);
    CHECK(await(f.io, f.gpu.async_read(x, pinned.span())));
    CHECK(pinned[99'999] == 100'000.0f);
    CHECK(await(f.io, f.gpu.async_stats()).value().memory.pinned_used >= 400'000);
    // More than the area can ever hold.
    CHECK(await(f.io, f.gpu.async_alloc_pinned<float>(100'000'000)).error() == errc::out_of_memory);
}

TEST_CASE("a sequence of ops returns a reply for each")
{
    isolated_fixture f;
    const auto x = f.upload(numbers(4));
    auto r = await(
        f.io, f.gpu.async_exec(seq(memory::fill<float>{x, 2.0f}, blas::dot<float>{x, x, 4}, blas::asum<float>{x, 4})));
    REQUIRE(r);
    CHECK(std::get<0>(r.value()) == 16.0f);
    CHECK(std::get<1>(r.value()) == 8.0f);
}

TEST_CASE("thousands of ops can be in flight at once")
{
    isolated_fixture f;
    constexpr int count = 5000;
    const auto x = await(f.io, f.gpu.async_alloc<float>(16, memory_init::zero)).value();
    const auto one = f.upload(std::vector<float>(16, 1.0f));
    int ended = 0;
    for (int i = 0; i < count; ++i)
        f.gpu.async_exec(blas::axpy<float>{.x = one, .y = x, .n = 16, .alpha = 1.0f}, [&](error_code ec) {
            CHECK_FALSE(ec);
            ++ended;
        });
    test::run_until(f.io, [&] { return ended == count; });
    CHECK(f.download(x.ref()) == std::vector<float>(16, float(count)));
}

TEST_CASE("invalid refs and sizes are typed errors and do not end the worker")
{
    isolated_fixture f;
    isolated_fixture other;
    const auto x = f.upload(numbers(8));
    const auto y = other.upload(numbers(8));
    CHECK(f.run(memory::fill<float>{y, 1.0f}) == errc::wrong_device);
    CHECK(f.run(memory::fill<float>{x.ref().subspan(4, 5), 1.0f}) == errc::out_of_bounds);
    CHECK(f.run(memory::copy<float>{x.ref().subspan(0, 5), x.ref().subspan(3, 5)}) == errc::overlap);
    CHECK(await(f.io, f.gpu.async_alloc<float>(0)).error() == errc::invalid_argument);
    std::vector<float> shorter(3);
    CHECK(await(f.io, f.gpu.async_read(x, std::span<float>(shorter))).error() == errc::length_mismatch);
    any_ref lie = x.ref().raw();
    lie.type = dtype::f64;
    std::vector<float> eight(8);
    CHECK(await(f.io, f.gpu.async_read(ref<float>::from_raw(lie), std::span<float>(eight))).error() ==
          errc::wrong_dtype);
    CHECK(f.download(x.ref()) == numbers(8));
    constexpr auto huge = std::numeric_limits<std::size_t>::max();
    CHECK(await(f.io, f.gpu.async_download(x.ref().subspan(4, huge))).error() == errc::out_of_bounds);
    CHECK(await(f.io, f.gpu.async_download(x.ref().subspan(4, huge / 4))).error() == errc::out_of_bounds);
    // Large enough to be sent in pieces, of which all but the last are in bounds.
    const std::size_t n = std::size_t(1) << 20;
    const auto large = f.upload(numbers(n));
    const std::vector<float> zeros(n);
    CHECK(await(f.io, f.gpu.async_write(large.ref().subspan(1, n), std::span<const float>(zeros))).error() ==
          errc::out_of_bounds);
    CHECK(f.download(large.ref()) == numbers(n));
    CHECK(f.gpu.status().generation == 1);
}

TEST_CASE("ops that need the calling process are refused immediately")
{
    isolated_fixture f;
    const auto x = f.upload(numbers(8));
    auto r = await(f.io, f.gpu.async_submit(in(x), [](native_stream, std::span<const float>) {}));
    CHECK(r.error() == errc::not_isolatable);
    CHECK(await(f.io, f.gpu.async_alloc_managed<float>(8)).error() == errc::not_isolatable);
    float memory[4]{};
    CHECK(await(f.io, f.gpu.async_adopt(memory, 4, nullptr)).error() == errc::not_isolatable);
    CHECK(f.download(x.ref()) == numbers(8));
}

TEST_CASE("each device of a process has its own worker")
{
    isolated_fixture a;
    isolated_fixture b;
    CHECK(a.process() != b.process());
    const auto x = a.upload(numbers(10));
    const auto y = b.upload(numbers(20));
    CHECK(a.download(x.ref()) == numbers(10));
    CHECK(b.download(y.ref()) == numbers(20));
}

TEST_SUITE_END();

} // namespace test_integration_work
