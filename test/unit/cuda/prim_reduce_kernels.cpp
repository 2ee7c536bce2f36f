#include "prim/reduction_shape.hpp"
#include "support/emulated_kernels.hpp"
#include "support/prim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace test_cuda_prim_reduce_kernels {

// The kernels of reductions and scans, compiled as C++.
namespace {

namespace code = coaccel_prim;
using coaccel::prim::layout;

code::reduction_loops loops_of(const layout<2>& l)
{
    const auto made = coaccel::prim::reduction_loops(l, 0);
    static_assert(sizeof(made) == sizeof(code::reduction_loops));
    return std::bit_cast<code::reduction_loops>(made);
}

code::slices sliced(std::uint64_t elements, std::uint64_t length)
{
    return {0, (elements - 1) / length + 1, length};
}

/// Both launches, with few threads.
template <class Function, class T>
void reduce(const code::reduction_loops& l, const code::slices& s, const std::vector<T>& x, std::vector<T>& y)
{
    using state = typename code::value_fold<Function, T>::state;
    std::vector<state> parts(l.results.count * s.count);
    test::emulate_together(3, 8, [&] { code::reduce<Function, T>(0, l, s, x.data(), y.data(), parts.data()); });
    if (s.count > 1)
        test::emulate_together(2, 8, [&] { code::reduce<Function, T>(1, l, s, x.data(), y.data(), parts.data()); });
}

} // namespace

TEST_SUITE_BEGIN("prim reduction kernels");

TEST_CASE("a row in any number of slices")
{
    std::mt19937 random(61);
    for (const std::uint64_t n : {1, 7, 8, 9, 64, 65, 127, 128, 300})
        for (const std::uint64_t length : {1, 5, 16, 1000}) {
            CAPTURE(n);
            CAPTURE(length);
            const auto x = test::random_elements<float>(random, n, -1, 1);
            const auto l = loops_of(layout<2>::vector(n).scalar(1));
            auto y = test::poisoned<float>(1);
            reduce<code::reduce_sum>(l, sliced(n, length), x, y);
            const double sum = std::accumulate(x.begin(), x.end(), 0.0);
            CHECK(test::close(y[0], sum, 1e-6));
            reduce<code::reduce_max>(l, sliced(n, length), x, y);
            CHECK(y[0] == *std::max_element(x.begin(), x.end()));
            reduce<code::reduce_min>(l, sliced(n, length), x, y);
            CHECK(y[0] == *std::min_element(x.begin(), x.end()));
        }
}

TEST_CASE("sums do not depend on the number of blocks and on the alignment")
{
    std::mt19937 random(62);
    constexpr std::uint64_t n = 300;
    const auto x = test::random_elements<double>(random, n + 1, -1, 1);
    std::vector<double> shifted(n + 2);
    std::copy_n(x.begin(), n, shifted.begin() + 1);
    const auto l = loops_of(layout<2>::vector(n).scalar(1));
    const auto s = sliced(n, 64);
    std::vector<double> results;
    for (const unsigned blocks : {1u, 2u, 5u})
        for (const double* from : {x.data(), static_cast<const double*>(shifted.data() + 1)}) {
            std::vector<double> parts(s.count);
            double y = 0;
            test::emulate_together(blocks, 8,
                                   [&] { code::reduce<code::reduce_sum, double>(0, l, s, from, &y, parts.data()); });
            test::emulate_together(blocks, 8,
                                   [&] { code::reduce<code::reduce_sum, double>(1, l, s, from, &y, parts.data()); });
            results.push_back(y);
        }
    CHECK(std::ranges::count(results, results[0]) == std::ssize(results));
}

TEST_CASE("results and elements of several dimensions, by blocks and by threads")
{
    std::mt19937 random(63);
    const auto shape = layout<2>::packed({4, 6, 5}).operand(1, {0, 1, 0});
    const auto x = test::random_elements<code::i32>(random, 120, -1000, 1000);
    std::vector<code::i32> expected(6);
    for (std::size_t i = 0; i < x.size(); ++i)
        expected[i / 5 % 6] += x[i];
    const auto l = loops_of(shape);
    REQUIRE(l.results.count == 6);
    REQUIRE(l.elements.count == 20);
    for (const std::uint64_t length : {3, 20}) {
        auto y = test::poisoned<code::i32>(6);
        reduce<code::reduce_sum>(l, sliced(20, length), x, y);
        CHECK(y == expected);
    }
    auto y = test::poisoned<code::i32>(6);
    test::emulate(2, 2,
                  [&] { code::reduce<code::reduce_sum, code::i32>(0, l, {1, 1, 20}, x.data(), y.data(), nullptr); });
    CHECK(y == expected);
}

TEST_CASE("the index of an element, whichever slice it is in")
{
    constexpr std::uint64_t n = 90;
    const auto l = loops_of(layout<2>::vector(n).scalar(1));
    for (const std::uint64_t peak : {0, 1, 31, 32, 60, 89}) {
        std::vector<code::i8> x(n, 1);
        x[peak] = 5;
        x[89] = 5;
        const auto s = sliced(n, 32);
        std::vector<code::indexed<code::i8>> parts(s.count);
        code::u64 y = 1000;
        test::emulate_together(2, 4,
                               [&] { code::arg_reduce<code::arg_max, code::i8>(0, l, s, x.data(), &y, parts.data()); });
        test::emulate_together(1, 4,
                               [&] { code::arg_reduce<code::arg_max, code::i8>(1, l, s, x.data(), &y, parts.data()); });
        CHECK(y == peak);
    }
}

TEST_CASE("segments by blocks and by threads")
{
    std::mt19937 random(64);
    const std::vector<code::u64> offsets{0, 0, 3, 50, 40, 100, 999};
    constexpr std::uint64_t rows = 120;
    for (const std::uint64_t columns : {1, 3}) {
        const auto x = test::random_elements<code::u16>(random, rows * columns, 0, 60000);
        std::vector<code::u16> expected(6 * columns);
        for (std::size_t s = 0; s < 6; ++s)
            for (std::uint64_t r = offsets[s]; r < std::min<std::uint64_t>(offsets[s + 1], rows); ++r)
                for (std::uint64_t c = 0; c < columns; ++c)
                    expected[s * columns + c] = static_cast<code::u16>(expected[s * columns + c] + x[r * columns + c]);
        for (const code::u64 by_thread : {0, 1}) {
            auto y = test::poisoned<code::u16>(6 * columns);
            test::emulate_together(2, 8, [&] {
                code::segmented_reduce<code::reduce_sum, code::u16>(by_thread, rows, 6, columns, x.data(),
                                                                    offsets.data(), y.data(), 0);
            });
            CHECK(y == expected);
        }
    }
}

TEST_CASE("a scan in any number of slices, also in place")
{
    std::mt19937 random(65);
    // Each of 64 threads scans 4 elements at a time.
    for (const std::uint64_t n : {1, 8, 9, 130, 300, 515})
        for (const std::uint64_t length : {32, 70, 1000})
            for (const std::uint64_t inner : {1, 2})
                for (const code::u64 exclusive : {0, 1}) {
                    CAPTURE(n);
                    CAPTURE(length);
                    CAPTURE(inner);
                    constexpr std::uint64_t outer = 2;
                    const auto x = test::random_elements<code::i64>(random, outer * n * inner, -100, 100);
                    auto y = x;
                    const auto s = sliced(n, length);
                    std::vector<code::i64> parts(outer * inner * s.count);
                    const code::scan_shape shape{n, outer, inner, exclusive};
                    for (const code::u64 launch : {0, 1, 2})
                        if (launch == 2 || s.count > 1)
                            test::emulate_together(2, 64, [&] {
                                code::scan<code::reduce_sum, code::i64>(launch, shape, s, y.data(), y.data(), 0,
                                                                        parts.data());
                            });
                    auto z = test::poisoned<code::i64>(x.size());
                    test::emulate(2, 3, [&] {
                        code::scan<code::reduce_sum, code::i64>(2, shape, {1, 1, n}, x.data(), z.data(), 0, nullptr);
                    });
                    std::size_t wrong = 0;
                    for (std::uint64_t row = 0; row < outer * inner; ++row) {
                        code::i64 sum = 0;
                        for (std::uint64_t k = 0; k < n; ++k) {
                            const auto at = (row / inner * n + k) * inner + row % inner;
                            const code::i64 expected = exclusive ? sum : sum + x[at];
                            wrong += y[at] != expected;
                            wrong += z[at] != expected;
                            sum += x[at];
                        }
                    }
                    CHECK(wrong == 0);
                }
}

TEST_CASE("squares of a matrix go through shared memory")
{
    std::mt19937 random(66);
    for (const auto& [matrices, rows, columns] : {std::array<std::uint64_t, 3>{1, 33, 70}, {1, 64, 32}, {3, 5, 40}}) {
        const auto x = test::random_bits<code::u16>(random, matrices * rows * columns);
        const auto l = coaccel::prim::loops_of(
            layout<2>::packed({matrices, columns, rows}).operand(0, {rows * columns, 1, columns}), 0);
        REQUIRE(l.rank == (matrices == 1 ? 2 : 3));
        auto y = test::poisoned<code::u16>(x.size());
        test::emulate_together(
            2, 64, [&] { code::transpose<code::u16>(1, std::bit_cast<code::loops<2>>(l), x.data(), y.data()); });
        std::size_t wrong = 0;
        for (std::uint64_t m = 0; m < matrices; ++m)
            for (std::uint64_t r = 0; r < rows; ++r)
                for (std::uint64_t c = 0; c < columns; ++c)
                    wrong += y[(m * columns + c) * rows + r] != x[(m * rows + r) * columns + c];
        CHECK(wrong == 0);
    }
}

TEST_CASE("how rows are divided depends on the shape only, and covers them")
{
    using coaccel::prim::slices_of;
    for (const std::uint64_t rows : {1ull, 5ull, 3000ull, 1ull << 40})
        for (const std::uint64_t n : {1ull, 32ull, 33ull, 8191ull, 100000ull, 1ull << 26, (1ull << 40) + 1})
            for (const bool adjacent : {false, true})
                for (const std::uint64_t least : {4096, 8192, 32768}) {
                    if (rows > (1ull << 40) / n * 64)
                        continue;
                    const auto s = slices_of(rows, n, adjacent, least);
                    CAPTURE(rows);
                    CAPTURE(n);
                    CAPTURE(least);
                    CHECK(s.count >= 1);
                    CHECK((s.count - 1) * s.length < n);
                    CHECK((n - 1) / s.length + 1 == s.count);
                    CHECK((s.count == 1 || rows * s.count <= 1024));
                    CHECK((s.count == 1 || s.length >= least));
                    CHECK((!s.by_thread || s.count == 1));
                }
    // Enough blocks for a large vector.
    CHECK(slices_of(1, 1 << 26, true, 8192).count == 1024);
}

TEST_SUITE_END();

} // namespace test_cuda_prim_reduce_kernels
