#include "prim/order_slices.hpp"
#include "support/emulated_kernels.hpp"
#include "support/prim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace test_cuda_prim_order_kernels {

// The kernels of top_k and sort, compiled as C++.
namespace {

namespace code = coaccel_prim;

code::order_slices sliced(std::uint64_t n, std::uint64_t length)
{
    return {(n - 1) / length + 1, length};
}

std::vector<std::uint64_t> sorted_indices(const code::i16* x, std::uint64_t n, bool descending)
{
    std::vector<std::uint64_t> made(n);
    std::iota(made.begin(), made.end(), 0);
    std::stable_sort(made.begin(), made.end(),
                     [&](std::uint64_t a, std::uint64_t b) { return descending ? x[a] > x[b] : x[a] < x[b]; });
    return made;
}

/// How many elements are not where a stable sort of each row by `key` places them. `places` has the sorted indices.
template <class T, class Key>
std::size_t wrong_places(const std::vector<T>& x, const std::vector<T>& sorted, const std::vector<code::u64>& places,
                         std::uint64_t n, const Key& key)
{
    std::size_t wrong = 0;
    std::vector<std::uint64_t> expected(n);
    for (std::uint64_t row = 0; row < x.size(); row += n) {
        std::iota(expected.begin(), expected.end(), row);
        std::ranges::stable_sort(expected, {}, [&](std::uint64_t i) { return key(x[i]); });
        for (std::uint64_t i = 0; i < n; ++i)
            wrong += places[row + i] != expected[i] || !test::same_bytes(sorted[row + i], x[expected[i]]);
    }
    return wrong;
}

struct rows_and_slices {
    std::uint64_t outer, n, length;
};

/// Sorts keys with and without values by one of their bytes.
template <class T>
void check_step(const rows_and_slices& r, int shift, bool descending)
{
    // Not a structured binding, which clang 14 does not capture.
    const std::uint64_t outer = r.outer, n = r.n, length = r.length;
    CAPTURE(n);
    CAPTURE(length);
    std::mt19937 random(84);
    // Many different bytes, then the same one.
    auto x = test::random_bits<T>(random, outer * n);
    std::fill(x.begin() + static_cast<std::ptrdiff_t>(n / 3), x.begin() + static_cast<std::ptrdiff_t>(n / 2), x[0]);
    const auto s = sliced(n, length);
    const code::sort_shape shape{n, outer, descending ? ~code::u64(0) >> (64 - 8 * sizeof(T)) : 0};
    std::vector<code::u64> counts(outer * 256 * (s.count + 1));
    std::vector<code::u64> indices(x.size());
    std::iota(indices.begin(), indices.end(), 0);
    auto keys = test::poisoned<T>(x.size());
    auto alone = keys;
    auto places = test::poisoned<code::u64>(x.size());
    for (const code::u64 launch : {0, 1, 2})
        if (launch != 1 || s.count > 1)
            test::emulate_together(2, 256, [&] {
                code::sort_pairs<T>(launch, shape, s, static_cast<code::u64>(shift), x.data(), indices.data(),
                                    keys.data(), places.data(), counts.data());
            });
    // The counts are the same.
    test::emulate_together(2, 256, [&] {
        code::sort<T>(2, shape, s, static_cast<code::u64>(shift), x.data(), alone.data(), counts.data());
    });
    const auto byte = [&](const T& v) { return code::digit_of(v, shape, shift); };
    CHECK(wrong_places(x, keys, places, n, byte) == 0);
    CHECK(wrong_places(x, alone, places, n, byte) == 0);
}

} // namespace

TEST_SUITE_BEGIN("prim order kernels");

TEST_CASE("top_k of any number of slices")
{
    std::mt19937 random(81);
    for (const std::uint64_t n : {1, 40, 100})
        for (const std::uint64_t k : {1, 3, 17, 40})
            for (const std::uint64_t length : {20, 45, 100})
                for (const bool descending : {false, true}) {
                    // Only the last slice may have fewer than k elements.
                    if (k > n || k > length)
                        continue;
                    CAPTURE(n);
                    CAPTURE(k);
                    CAPTURE(length);
                    constexpr std::uint64_t outer = 2;
                    // Few different values.
                    auto x = test::random_elements<code::i16>(random, outer * n, -6, 6);
                    x[0] = 30000;
                    const auto s = sliced(n, length);
                    const code::top_k_shape shape{n, k, outer, descending ? 0xffffu : 0u};
                    std::vector<code::i16> values(outer * k);
                    std::vector<code::u64> indices(outer * k);
                    std::vector<code::i16> part_values(outer * s.count * k);
                    std::vector<code::u64> part_indices(outer * s.count * k);
                    for (code::u64 second = 0; second < (s.count == 1 ? 1 : 2); ++second)
                        test::emulate_together(2, 4, [&] {
                            code::top_k<code::i16>(second, shape, s, x.data(), values.data(), indices.data(),
                                                   part_values.data(), part_indices.data());
                        });
                    std::size_t wrong = 0;
                    for (std::uint64_t row = 0; row < outer; ++row) {
                        const auto expected = sorted_indices(x.data() + row * n, n, descending);
                        for (std::uint64_t i = 0; i < k; ++i) {
                            wrong += indices[row * k + i] != expected[i];
                            wrong += values[row * k + i] != x[row * n + expected[i]];
                        }
                    }
                    CHECK(wrong == 0);
                }
}

TEST_CASE("sort of short rows")
{
    std::mt19937 random(82);
    for (const std::uint64_t n : {1, 64, 300})
        for (const bool descending : {false, true}) {
            constexpr std::uint64_t outer = 2;
            auto x = test::random_elements<code::i16>(random, outer * n, -50, 50);
            const code::sort_shape shape{n, outer, descending ? 0xffffu : 0u};
            auto y = test::poisoned<code::i16>(x.size());
            auto z = y;
            std::vector<code::u64> values(x.size());
            std::iota(values.begin(), values.end(), 0);
            auto sorted = test::poisoned<code::u64>(x.size());
            test::emulate(2, 32, [&] {
                code::sort<code::i16>(3, shape, {1, n}, 0, x.data(), y.data(), nullptr);
                code::sort_pairs<code::i16>(3, shape, {1, n}, 0, x.data(), values.data(), z.data(), sorted.data(),
                                            nullptr);
            });
            const auto key = [&](code::i16 v) { return descending ? -v : v; };
            CHECK(wrong_places(x, y, sorted, n, key) == 0);
            CHECK(y == z);
        }
}

TEST_CASE("sort by one byte, with one and several tiles, slices and rows")
{
    // A tile has 4096 elements, or 2048 with values and of 8 bytes.
    check_step<code::i16>({2, 5001, 4096}, 8, false);
    check_step<code::u8>({1, 8200, 8192}, 0, true);
    check_step<code::f16>({3, 700, 700}, 0, true);
    check_step<code::f32>({1, 4097, 4097}, 24, true);
    check_step<code::i64>({2, 2100, 2048}, 0, false);
    check_step<code::f64>({1, 2049, 2049}, 56, false);
}

TEST_CASE("the tiles of all types fit into the shared memory of a block, with the sums of the warps")
{
    CHECK(sizeof(code::sort_tile<true, code::f64>) + 64 <= 48 << 10);
    CHECK(sizeof(code::sort_tile<true, code::u8>) + 64 <= 48 << 10);
    CHECK(sizeof(code::sort_tile<false, code::f64>) + 64 <= 48 << 10);
    CHECK(sizeof(code::sort_tile<false, code::f32>) + 64 <= 48 << 10);
}

TEST_CASE("the counts of any number of slices are added")
{
    std::mt19937 random(83);
    for (const std::uint64_t slices : {33, 150}) {
        CAPTURE(slices);
        constexpr std::uint64_t outer = 1;
        auto counts = test::random_elements<code::u64>(random, outer * 256 * slices, 0, 1000);
        auto expected = counts;
        expected.reserve(counts.size() + outer * 256);
        for (std::uint64_t row = 0; row < outer * 256; ++row) {
            const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(row * slices);
            const auto end = begin + static_cast<std::ptrdiff_t>(slices);
            expected.push_back(std::accumulate(begin, end, code::u64(0)));
            std::exclusive_scan(begin, end, begin, code::u64(0));
        }
        counts.resize(expected.size());
        test::emulate_together(
            3, 256, [&] { code::sort<code::u8>(1, {1, outer, 0}, {slices, 1}, 0, nullptr, nullptr, counts.data()); });
        CHECK(counts == expected);
    }
}

TEST_CASE("the slices of a sort cover its rows with whole tiles")
{
    for (const std::uint64_t tile : {2048, 4096})
        for (const std::uint64_t rows : {1ull, 3ull, 100000ull})
            for (const std::uint64_t n : {513ull, 4096ull, 8191ull, 8192ull, 9001ull, 1ull << 26, (1ull << 40) + 1}) {
                const auto s = coaccel::prim::sort_slices(rows, n, tile);
                CAPTURE(n);
                CHECK((s.count - 1) * s.length < n);
                CHECK((n - 1) / s.length + 1 == s.count);
                CHECK((s.count == 1 || s.length % tile == 0));
                CHECK((s.count == 1 || rows * s.count <= 528));
            }
}

TEST_SUITE_END();

} // namespace test_cuda_prim_order_kernels
