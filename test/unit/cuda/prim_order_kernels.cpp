#include "support/emulated_kernels.hpp"
#include "support/prim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
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

/// What the launches of a sort have in common.
template <class T>
struct sort_case {
    sort_case(std::uint64_t rows, std::uint64_t n, bool descending, std::uint64_t tile)
        : shape{n, rows, descending ? ~code::u64(0) >> (64 - 8 * sizeof(T)) : 0, (n - 1) / tile + 1},
          x(test::random_bits<T>(random, rows * n)), indices(x.size())
    {
        // The same element many times.
        std::fill(x.begin() + static_cast<std::ptrdiff_t>(n / 3), x.begin() + static_cast<std::ptrdiff_t>(n / 2), x[0]);
        std::iota(indices.begin(), indices.end(), 0);
    }

    std::mt19937 random{84};
    code::sort_shape shape;
    std::vector<T> x;
    std::vector<code::u64> indices;
    std::vector<T> keys = test::poisoned<T>(x.size());
    std::vector<code::u64> places = test::poisoned<code::u64>(x.size());
};

/// Sorts keys with values, and without, by one of their bytes, in all launches that this takes.
template <class T>
void check_byte(std::uint64_t rows, std::uint64_t n, code::u32 byte, bool descending)
{
    CAPTURE(n);
    // That of sorts with values, and of those without.
    for (const bool pairs : {true, false}) {
        const std::uint64_t tile =
            pairs ? code::sort_tile<true, T>::length : std::uint64_t(code::sort_tile<false, T>::length);
        sort_case<T> c(rows, n, descending, tile);
        auto next = test::poisoned<code::u32>(sizeof(T));
        auto begins = test::poisoned<code::u64>(rows * sizeof(T) * 256);
        std::vector<code::u64> states[2] = {test::poisoned<code::u64>(rows * c.shape.tiles * 256),
                                            test::poisoned<code::u64>(rows * c.shape.tiles * 256)};
        const code::sort_memory memory{next.data(), begins.data(), {states[0].data(), states[1].data()}};
        const auto clear = [](auto& words) {
            test::emulate(2, 32, [&] {
                code::clear_words(reinterpret_cast<code::u32*>(words.data()),
                                  words.size() * sizeof(words[0]) / sizeof(code::u32));
            });
        };
        clear(next);
        clear(begins);
        clear(states[byte % 2]);
        for (const auto which : {code::sort_count, code::sort_begin, code::sort_move})
            test::emulate_together(2, 256, [&] {
                if (pairs)
                    code::sort_pairs<T>(which, c.shape, byte, c.x.data(), c.indices.data(), c.keys.data(),
                                        c.places.data(), memory);
                else
                    code::sort<T>(which, c.shape, byte, c.x.data(), c.keys.data(), memory);
            });
        const auto digit = [&](const T& v) { return code::digit_of(v, c.shape, byte); };
        if (!pairs) {
            auto expected = c.x;
            for (std::uint64_t row = 0; row < rows; ++row)
                std::ranges::stable_sort(expected.begin() + static_cast<std::ptrdiff_t>(row * n),
                                         expected.begin() + static_cast<std::ptrdiff_t>((row + 1) * n), {}, digit);
            CHECK(std::memcmp(expected.data(), c.keys.data(), expected.size() * sizeof(T)) == 0);
            continue;
        }
        CHECK(wrong_places(c.x, c.keys, c.places, n, digit) == 0);
        // For the next byte.
        CHECK(std::ranges::count(states[(byte + 1) % 2], code::u64(0)) == std::ssize(states[0]));
    }
}

/// Sorts rows of one tile by all bytes.
template <class T>
void check_small_rows(std::uint64_t rows, std::uint64_t n, bool descending)
{
    CAPTURE(n);
    sort_case<T> c(rows, n, descending, n);
    auto alone = c.keys;
    test::emulate_together(2, 256, [&] {
        code::sort_pairs<T>(code::sort_small, c.shape, 0, c.x.data(), c.indices.data(), c.keys.data(), c.places.data(),
                            {});
    });
    test::emulate_together(2, 256, [&] { code::sort<T>(code::sort_small, c.shape, 0, c.x.data(), alone.data(), {}); });
    const auto key = [&](const T& v) { return code::sort_key(v, c.shape.flip); };
    CHECK(wrong_places(c.x, c.keys, c.places, n, key) == 0);
    CHECK(wrong_places(c.x, alone, c.places, n, key) == 0);
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
                        test::emulate_together(2, 32, [&] {
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
            const code::sort_shape shape{n, outer, descending ? 0xffffu : 0u, 1};
            auto y = test::poisoned<code::i16>(x.size());
            auto z = y;
            std::vector<code::u64> values(x.size());
            std::iota(values.begin(), values.end(), 0);
            auto sorted = test::poisoned<code::u64>(x.size());
            test::emulate(2, 32, [&] {
                code::sort<code::i16>(code::sort_short, shape, 0, x.data(), y.data(), {});
                code::sort_pairs<code::i16>(code::sort_short, shape, 0, x.data(), values.data(), z.data(),
                                            sorted.data(), {});
            });
            const auto key = [&](code::i16 v) { return descending ? -v : v; };
            CHECK(wrong_places(x, y, sorted, n, key) == 0);
            CHECK(y == z);
        }
}

TEST_CASE("sort by one byte, of one and several tiles and rows")
{
    // A tile has 4096 elements, or 3072 with values and of 8 bytes.
    check_byte<code::i16>(2, 5001, 1, false);
    check_byte<code::u8>(1, 8200, 0, true);
    check_byte<code::f16>(3, 700, 0, true);
    check_byte<code::f32>(1, 4097, 3, true);
    check_byte<code::i64>(2, 3100, 0, false);
    check_byte<code::f64>(1, 3073, 7, false);
}

TEST_CASE("sort of rows of one tile")
{
    check_small_rows<code::i16>(3, 3072, false);
    check_small_rows<code::f32>(2, 700, true);
    check_small_rows<code::u8>(2, 1999, true);
    check_small_rows<code::f64>(1, 513, false);
}

TEST_CASE("a tile adds the counts of the tiles before it, up to one that has those of the others")
{
    constexpr std::size_t values = 256;
    const auto known = [](code::u64 n) { return n | code::count_of_tile; };
    const auto with_others = [](code::u64 n) { return n | code::count_with_others; };
    for (const std::size_t value : {0, 17, 255}) {
        std::vector<code::u64> states(6 * values);
        const auto set = [&](std::size_t tile, code::u64 state) { states[tile * values + value] = state; };
        set(0, with_others(1000));
        set(1, known(100));
        set(2, with_others(70));
        set(3, known(9));
        set(4, known(0));
        set(5, known(4));
        const auto sum = [&](std::size_t tile) { return code::look_back(&states[tile * values + value]); };
        CHECK(sum(5) == 83);
        CHECK(sum(4) == 79);
        CHECK(sum(2) == 70);
        CHECK(sum(1) == 1100);
    }
}

TEST_CASE("a tile waits for the count of the tile before it")
{
    std::vector<code::u64> states(256);
    code::u64 sum = 0;
    std::thread waiting([&] { sum = code::look_back(states.data()); });
    code::publish(states.data(), code::count_with_others | 5);
    waiting.join();
    CHECK(sum == 5);
}

TEST_CASE("the tiles of all types fit into the shared memory of a block, with the sums of the warps")
{
    CHECK(sizeof(code::sort_tile<true, code::f64>) + 128 <= 48 << 10);
    CHECK(sizeof(code::sort_tile<true, code::u8>) + 128 <= 48 << 10);
    CHECK(sizeof(code::sort_tile<false, code::f64>) + 128 <= 48 << 10);
    CHECK(sizeof(code::sort_tile<false, code::f32>) + 128 <= 48 << 10);
}

TEST_SUITE_END();

} // namespace test_cuda_prim_order_kernels
