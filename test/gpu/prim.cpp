#include "support/prim.hpp"

#include "gpu.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

// Sizes that take too long on a CPU. The cases of test/unit/ops also run on the GPU, in this program.
namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;
using test::run_listed;

} // namespace

TEST_SUITE_BEGIN("prim on a GPU");

TEST_CASE("sums and scans of millions of elements")
{
    gpu_fixture f;
    std::mt19937 random(1);
    constexpr std::uint64_t n = (1 << 24) + 77;
    std::vector<std::uint32_t> x(n);
    std::ranges::generate(x, random);
    const auto from = f.upload(x);
    const auto to = f.upload(test::poisoned<std::uint32_t>(n));
    REQUIRE_FALSE(run_listed(f, prim::scan<std::uint32_t>{.x = from, .y = to, .n = n}));
    std::vector<std::uint32_t> expected(n);
    std::partial_sum(x.begin(), x.end(), expected.begin());
    CHECK(f.download(to) == expected);
    REQUIRE_FALSE(run_listed(f, prim::reduce<std::uint32_t>{.x = from, .y = to}));
    CHECK(f.download(to.ref().first(1))[0] == expected.back());

    const auto reals = test::random_elements<float>(random, n, -1, 1);
    const auto real = f.upload(reals);
    const auto sum = f.upload(test::poisoned<float>(1));
    const double total = std::accumulate(reals.begin(), reals.end(), 0.0);
    REQUIRE_FALSE(run_listed(f, prim::reduce<float>{.x = real, .y = sum}));
    CHECK(std::abs(double(f.download(sum)[0]) - total) <= 1e-7 * std::abs(total) + 1e-6);
}

TEST_CASE("more than 2^32 elements")
{
    gpu_fixture f;
    constexpr std::uint64_t n = (std::uint64_t(1) << 32) + 1000;
    auto made = await(f.io, f.gpu.async_alloc<std::uint8_t>(n));
    if (!made && made.error() == errc::out_of_memory) {
        MESSAGE("skipped: not enough memory");
        return;
    }
    REQUIRE_MESSAGE(made, made.error().message());
    const auto& x = made.value();
    REQUIRE_FALSE(run_listed(f, prim::sequence<std::uint8_t>{.dst = x, .start = 0, .step = 0}));
    constexpr std::uint64_t peak = n - 3;
    const std::vector<std::uint8_t> one{5};
    REQUIRE(await(f.io, f.gpu.async_write(x.ref().subspan(peak, 1), one)));
    REQUIRE(await(f.io, f.gpu.async_write(x.ref().subspan(7, 1), one)));
    const auto index = f.upload(test::poisoned<std::uint64_t>(1));
    const auto sum = f.upload(test::poisoned<std::uint8_t>(1));
    REQUIRE_FALSE(run_listed(f, prim::arg_reduce<std::uint8_t>{.x = x.ref().subspan(8, n - 8), .y = index}));
    CHECK(f.download(index)[0] == peak - 8);
    REQUIRE_FALSE(run_listed(f, prim::reduce<std::uint8_t>{.x = x, .y = sum}));
    CHECK(f.download(sum)[0] == 10);
    REQUIRE_FALSE(run_listed(f, prim::scan<std::uint8_t>{.x = x, .y = x, .n = n}));
    CHECK(f.download(x.ref().subspan(peak - 1, 3)) == std::vector<std::uint8_t>{5, 10, 10});
    // Zeros, fives from place 7, tens from the peak.
    const auto values = f.upload(test::poisoned<std::uint8_t>(4));
    const auto lengths = f.upload(test::poisoned<std::uint64_t>(4));
    const auto count = f.upload(test::poisoned<std::uint64_t>(1));
    REQUIRE_FALSE(run_listed(
        f, prim::run_length<std::uint8_t>{.x = x, .values = values, .lengths = lengths, .count = count, .n = n}));
    CHECK(f.download(count)[0] == 3);
    CHECK(f.download(values) == std::vector<std::uint8_t>{0, 5, 10, 0});
    CHECK(f.download(lengths) == std::vector<std::uint64_t>{7, peak - 7, n - peak, 0});
    REQUIRE_FALSE(run_listed(
        f, prim::select<std::uint8_t>{.x = x, .mask = x, .y = values.ref().first(2), .count = count, .n = n}));
    CHECK(f.download(count)[0] == n - 7);
    CHECK(f.download(values) == std::vector<std::uint8_t>{5, 5, 10, 0});
    const auto counts = f.upload(test::poisoned<std::uint64_t>(4));
    REQUIRE_FALSE(run_listed(
        f, prim::histogram<std::uint8_t>{.x = x, .counts = counts.ref().first(3), .n = n, .bins = 3, .high = 15}));
    CHECK(f.download(counts) == std::vector<std::uint64_t>{7, peak - 7, n - peak, test::poisoned<std::uint64_t>(1)[0]});
}

TEST_CASE_TEMPLATE("sort and top_k of millions of elements", T, float, double, std::int16_t, std::uint8_t)
{
    gpu_fixture f;
    std::mt19937 random(2);
    constexpr std::uint64_t n = 3000001;
    constexpr std::uint64_t k = 1000;
    const auto x = test::random_elements<T>(random, n, 0, 200);
    std::vector<std::uint64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) { return x[a] > x[b]; });
    const auto from = f.upload(x);
    const auto numbers = f.upload(test::poisoned<std::uint64_t>(n));
    const auto keys = f.upload(test::poisoned<T>(n));
    const auto values = f.upload(test::poisoned<std::uint64_t>(n));
    REQUIRE_FALSE(run_listed(f, prim::sequence<std::uint64_t>{.dst = numbers, .start = 0, .step = 1}));
    REQUIRE_FALSE(run_listed(f, prim::sort_pairs<T>{.keys = from,
                                                    .values = numbers,
                                                    .sorted_keys = keys,
                                                    .sorted_values = values,
                                                    .n = n,
                                                    .order = prim::sort_order::descending}));
    CHECK(f.download(values) == order);
    const auto best = f.upload(test::poisoned<T>(k));
    const auto found = f.upload(test::poisoned<std::uint64_t>(k));
    REQUIRE_FALSE(run_listed(f, prim::top_k<T>{.x = from, .values = best, .indices = found, .n = n, .k = k}));
    CHECK(f.download(found) == std::vector<std::uint64_t>(order.begin(), order.begin() + k));
}

TEST_CASE("runs, selections and histograms of millions of elements")
{
    gpu_fixture f;
    std::mt19937 random(4);
    constexpr std::uint64_t n = 5000003;
    std::vector<std::uint8_t> x;
    std::vector<std::uint64_t> expected;
    while (x.size() < n) {
        const std::uint64_t longest = random() % 100 == 0 ? 100000 : 6;
        expected.push_back(std::min(n - x.size(), 1 + random() % longest));
        x.insert(x.end(), expected.back(), static_cast<std::uint8_t>(x.empty() ? 0 : x.back() + 1 + random() % 255));
    }
    const auto from = f.upload(x);
    const auto values = f.upload(test::poisoned<std::uint8_t>(n));
    const auto lengths = f.upload(test::poisoned<std::uint64_t>(n));
    const auto count = f.upload(test::poisoned<std::uint64_t>(1));
    REQUIRE_FALSE(run_listed(
        f, prim::run_length<std::uint8_t>{.x = from, .values = values, .lengths = lengths, .count = count, .n = n}));
    CHECK(f.download(count)[0] == expected.size());
    expected.resize(n);
    CHECK(f.download(lengths) == expected);
    std::vector<std::uint8_t> first(n);
    for (std::uint64_t i = 0, at = 0; at < n; at += expected[i++])
        first[i] = x[at];
    CHECK(f.download(values) == first);

    const auto y = f.upload(test::poisoned<std::uint8_t>(n));
    REQUIRE_FALSE(run_listed(f, prim::select<std::uint8_t>{.x = from, .mask = from, .y = y, .count = count, .n = n}));
    auto kept = x;
    std::erase(kept, 0);
    CHECK(f.download(count)[0] == kept.size());
    kept.resize(n);
    CHECK(f.download(y) == kept);

    std::vector<std::uint64_t> of_each(256);
    for (const auto v : x)
        ++of_each[v];
    const auto counts = f.upload(test::poisoned<std::uint64_t>(256));
    REQUIRE_FALSE(
        run_listed(f, prim::histogram<std::uint8_t>{.x = from, .counts = counts, .n = n, .bins = 256, .high = 256}));
    CHECK(f.download(counts) == of_each);
}

TEST_CASE("runs of a plan that sorts and selects, beside sorts that are no part of it")
{
    // The launches of all of them use the memory of their lane; graphs keep it.
    gpu_fixture f;
    constexpr std::uint64_t n = 100000;
    constexpr std::size_t runs = 64;
    plan_builder b("sort and select");
    const auto x = b.input<std::uint32_t>(n);
    const auto mask = b.input<std::uint8_t>(n);
    const auto sorted = b.scratch<std::uint32_t>(n);
    const auto y = b.output<std::uint32_t>(n);
    const auto count = b.output<std::uint64_t>(1);
    b.add(prim::sort<std::uint32_t>{.x = x, .y = sorted, .n = n});
    b.add(prim::select<std::uint32_t>{.x = sorted, .mask = mask, .y = y, .count = count, .n = n});
    auto loaded = await(f.io, f.gpu.async_load(b.finish().value(), {.instances = 8}));
    REQUIRE_MESSAGE(loaded, (loaded ? std::string() : loaded.error().message()));
    const plan p = std::move(loaded).value();

    struct run {
        std::vector<std::uint32_t> x, y;
        std::vector<std::uint8_t> mask;
        std::vector<std::uint64_t> count;
        buffer<std::uint64_t> from, to;
    };
    std::mt19937 random(5);
    std::vector<run> all(runs);
    for (run& r : all) {
        r.x = test::random_bits<std::uint32_t>(random, n);
        r.mask.resize(n);
        std::ranges::generate(r.mask, [&] { return static_cast<std::uint8_t>(random() % 3); });
        r.from = f.upload(std::vector<std::uint64_t>(r.x.rbegin(), r.x.rend()));
    }
    for (int round = 0; round < 5; ++round) {
        std::size_t ended = 0;
        std::size_t failed = 0;
        const auto done = [&](error_code ec) {
            ++ended;
            failed += ec ? 1 : 0;
        };
        for (run& r : all) {
            r.y = test::poisoned<std::uint32_t>(n);
            r.count = test::poisoned<std::uint64_t>(1);
            r.to = f.upload(test::poisoned<std::uint64_t>(n));
        }
        for (run& r : all) {
            p.async_run(from(r.x), from(r.mask), to(r.y), to(r.count), done);
            f.gpu.async_exec(prim::sort<std::uint64_t>{.x = r.from, .y = r.to, .n = n}, done);
        }
        test::run_until(f.io, [&] { return ended == 2 * runs; });
        CHECK(failed == 0);
        for (run& r : all) {
            auto expected = r.x;
            std::ranges::sort(expected);
            CHECK(f.download(r.to) == std::vector<std::uint64_t>(expected.begin(), expected.end()));
            std::size_t kept = 0;
            for (std::size_t i = 0; i < n; ++i)
                if (r.mask[i] != 0)
                    expected[kept++] = expected[i];
            CHECK(r.count[0] == kept);
            std::fill(expected.begin() + static_cast<std::ptrdiff_t>(kept), expected.end(), 0);
            CHECK(r.y == expected);
        }
    }
    CHECK(await(f.io, p.async_unload()));
}

TEST_CASE("a large matrix is transposed")
{
    gpu_fixture f;
    std::mt19937 random(3);
    constexpr std::uint64_t rows = 3001;
    constexpr std::uint64_t columns = 1234;
    const auto x = test::random_bits<std::uint32_t>(random, rows * columns);
    const auto from = f.upload(x);
    const auto to = f.upload(test::poisoned<std::uint32_t>(rows * columns));
    REQUIRE_FALSE(run_listed(f, prim::transpose<std::uint32_t>{.x = from, .y = to, .dims = {rows, columns}}));
    const auto y = f.download(to);
    std::size_t wrong = 0;
    for (std::uint64_t r = 0; r < rows; ++r)
        for (std::uint64_t c = 0; c < columns; ++c)
            wrong += y[c * rows + r] != x[r * columns + c];
    CHECK(wrong == 0);
}

TEST_SUITE_END();
