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

TEST_CASE("sort by bytes, and of short rows")
{
    std::mt19937 random(82);
    struct {
        std::uint64_t n, length;
    } constexpr rows[] = {{1, 1}, {256, 256}, {300, 256}, {300, 50}, {5000, 4096}};
    for (const auto& [n, length] : rows)
        for (const bool descending : {false, true}) {
            CAPTURE(n);
            CAPTURE(length);
            constexpr std::uint64_t outer = 2;
            auto x = test::random_elements<code::i16>(random, outer * n, -500, 500);
            std::vector<code::u64> values(x.size());
            std::iota(values.begin(), values.end(), 7);
            const auto s = sliced(n, length);
            const code::sort_shape shape{n, outer, descending ? 0xffffu : 0u};
            std::vector<code::u64> counts(outer * 256 * (s.count + 1));
            std::vector<code::i16> keys[] = {x, test::poisoned<code::i16>(x.size()),
                                             test::poisoned<code::i16>(x.size())};
            std::vector<code::u64> pairs[] = {values, test::poisoned<code::u64>(x.size()),
                                              test::poisoned<code::u64>(x.size())};
            for (const code::u64 pass : {0, 1})
                for (const code::u64 launch : {0, 1, 2})
                    if (launch != 1 || s.count > 1)
                        test::emulate_together(2, 256, [&] {
                            code::sort_pairs<code::i16>(launch, shape, s, 8 * pass, keys[pass].data(),
                                                        pairs[pass].data(), keys[pass + 1].data(),
                                                        pairs[pass + 1].data(), counts.data());
                        });
            auto at_once = test::poisoned<code::i16>(x.size());
            test::emulate(2, 32, [&] { code::sort<code::i16>(3, shape, s, 0, x.data(), at_once.data(), nullptr); });
            std::size_t wrong = 0;
            for (std::uint64_t row = 0; row < outer; ++row) {
                const auto expected = sorted_indices(x.data() + row * n, n, descending);
                for (std::uint64_t i = 0; i < n; ++i) {
                    const std::uint64_t at = row * n + expected[i];
                    wrong += keys[2][row * n + i] != x[at];
                    wrong += pairs[2][row * n + i] != values[at];
                    wrong += at_once[row * n + i] != x[at];
                }
            }
            CHECK(wrong == 0);
        }
}

TEST_CASE("the counts of any number of slices are added")
{
    std::mt19937 random(83);
    for (const std::uint64_t slices : {2, 33, 300}) {
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

TEST_SUITE_END();

} // namespace test_cuda_prim_order_kernels
