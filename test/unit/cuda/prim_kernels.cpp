#include "support/emulated_kernels.hpp"
#include "support/prim.hpp"

#include <coaccel/core/dtype.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace test_cuda_prim_kernels {

// The kernels of `prim`, compiled as C++.
namespace {

namespace code = coaccel_prim;
using coaccel::bfloat16;
using coaccel::float8_e4m3;
using coaccel::float8_e5m2;
using coaccel::half;

template <class T, class Code>
void check_format(const char* name)
{
    CAPTURE(name);
    std::size_t wrong = 0;
    for (std::uint32_t bits = 0; bits < 1u << (8 * sizeof(T)); ++bits) {
        Code c;
        c.bits = static_cast<decltype(c.bits)>(bits);
        const float expected = float(T::from_bits(c.bits));
        const float got = code::decode(c);
        wrong += std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected);
    }
    CHECK(wrong == 0);
    std::mt19937_64 random(11);
    for (int i = 0; i < 200000; ++i) {
        const float f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        wrong += code::encode<Code>(f).bits != T(f).bits();
        const double d = std::bit_cast<double>(random());
        wrong += code::encode<Code>(d).bits != T(d).bits();
        // Near the numbers of the type.
        const double near = double(float(T::from_bits(static_cast<typename T::bits_type>(random())))) *
                            (1 + std::ldexp(double(random() % 7) - 3, -14));
        wrong += !std::isnan(near) && code::encode<Code>(near).bits != T(near).bits();
        const auto n = static_cast<std::int64_t>(random() >> random() % 64);
        wrong += code::conversion<code::i64, Code>::of(n).bits != T(n).bits();
        const auto u = random() >> random() % 64;
        wrong += code::conversion<code::u64, Code>::of(u).bits != T(u).bits();
    }
    CHECK(wrong == 0);
}

/// Every place that `for_each` visits, in a grid.
struct visits {
    std::vector<std::vector<std::uint64_t>>* all;
    void operator()(const code::u64* at) const { all->push_back({at[0], at[1]}); }
};

} // namespace

TEST_SUITE_BEGIN("prim kernels");

TEST_CASE("narrow numbers are converted as on the CPU")
{
    check_format<half, code::f16>("f16");
    check_format<bfloat16, code::bf16>("bf16");
    check_format<float8_e4m3, code::f8_e4m3>("f8_e4m3");
    check_format<float8_e5m2, code::f8_e5m2>("f8_e5m2");
}

TEST_CASE("every grid visits every element once")
{
    std::mt19937 random(12);
    for (const unsigned blocks : {1u, 2u, 7u})
        for (const unsigned threads : {1u, 32u, 33u})
            for (code::u64 rank = 1; rank <= 6; ++rank) {
                code::loops<2> l{};
                l.rank = rank;
                l.count = 1;
                std::uint64_t stride = 1;
                for (code::u64 d = rank; d-- > 0;) {
                    l.dims[d] = 2 + random() % 3;
                    l.strides[0][d] = stride;
                    l.strides[1][d] = d == 0 ? 0 : 3 * stride;
                    stride *= l.dims[d];
                    l.count *= l.dims[d];
                }
                std::vector<std::vector<std::uint64_t>> seen;
                test::emulate(blocks, threads, [&] { code::for_each(l, visits{&seen}); });
                REQUIRE(seen.size() == l.count);
                std::sort(seen.begin(), seen.end());
                std::size_t wrong = 0;
                for (std::uint64_t i = 0; i < l.count; ++i)
                    // The first operand is packed; the second one repeats the first dimension.
                    wrong += seen[i][0] != i || seen[i][1] != 3 * (rank == 1 ? 0 : i % (l.count / l.dims[0]));
                CHECK(wrong == 0);
            }
}

TEST_CASE("adjacent elements are computed in tiles, others one by one")
{
    std::mt19937 random(14);
    // In tiles of 16 elements for each thread, or 4 of f64: none, one, and several with a rest.
    for (const std::uint64_t n : {1, 63, 64, 65, 1000})
        for (const unsigned blocks : {1u, 3u})
            for (const std::uint64_t shift : {0, 1}) {
                CAPTURE(n);
                CAPTURE(blocks);
                CAPTURE(shift);
                const auto run = [&](const auto& kernel) { test::emulate(blocks, 4, kernel); };
                const auto linear = [&]<int Operands>(code::loops<Operands>, std::uint64_t strides) {
                    code::loops<Operands> l{};
                    l.count = l.dims[0] = n;
                    l.rank = 1;
                    for (int k = 0; k < Operands; ++k)
                        l.strides[k][0] = strides >> k & 1;
                    return l;
                };
                std::size_t wrong = 0;
                auto bytes = test::random_bits<code::u8>(random, n + 2);
                const auto before = bytes;
                // In place.
                run([&] {
                    code::unary<code::integer_bit_not, code::u8>(linear(code::loops<2>{}, 3), bytes.data() + shift,
                                                                 bytes.data() + shift);
                });
                for (std::uint64_t i = 0; i < n + 2; ++i)
                    wrong += bytes[i] != (i < shift || i >= n + shift ? before[i] : 255 - before[i]);
                const auto a = test::random_elements<double>(random, n + 2, -9, 9);
                const auto b = test::random_elements<double>(random, n + 2, -9, 9);
                auto less = test::poisoned<code::u8>(n + 2);
                const auto less_end = less[n];
                // Each operand is repeated, or both are adjacent.
                for (const unsigned strides : {5u, 6u, 7u}) {
                    run([&] {
                        code::compare<code::compare_less, double>(linear(code::loops<3>{}, strides), a.data() + shift,
                                                                  b.data(), less.data());
                    });
                    for (std::uint64_t i = 0; i < n; ++i)
                        wrong += less[i] != (a[shift + (strides & 1 ? i : 0)] < b[strides & 2 ? i : 0] ? 1 : 0);
                    wrong += less[n] != less_end;
                }
                auto chosen = test::poisoned<code::i16>(n + 2);
                const auto chosen_end = chosen[n + 1];
                const auto one = test::random_bits<code::i16>(random, n);
                const code::i16 two = 77;
                run([&] {
                    code::where<code::i16>(linear(code::loops<4>{}, 11), less.data(), one.data(), &two,
                                           chosen.data() + shift);
                });
                for (std::uint64_t i = 0; i < n; ++i)
                    wrong += chosen[i + shift] != (less[i] ? one[i] : two);
                wrong += chosen[n + 1] != chosen_end;
                auto widened = test::poisoned<double>(n + 1);
                run([&] {
                    code::cast<code::i16, double>(linear(code::loops<2>{}, 3), one.data(), widened.data() + shift % 2);
                });
                for (std::uint64_t i = 0; i < n; ++i)
                    wrong += widened[i + shift] != one[i];
                CHECK(wrong == 0);
            }
}

TEST_CASE("indices beyond 32 bits are right")
{
    code::loops<2> l{};
    l.rank = 3;
    l.dims[0] = 5;
    l.dims[1] = 1ull << 31;
    l.dims[2] = 3;
    l.count = 15ull << 31;
    for (int d = 0; d < 3; ++d)
        l.strides[0][d] = d == 0 ? 3ull << 31 : d == 1 ? 3 : 1;
    l.strides[1][1] = 7;
    for (const code::u64 i : {0ull, 4294967295ull, 4294967296ull, 6442450944ull, (15ull << 31) - 1}) {
        const auto p = code::places_of(l, i);
        CHECK(p.at[0] == i);
        CHECK(p.at[1] == 7 * (i / 3 % (1ull << 31)));
    }
    // The last elements of a vector that are left to the last thread of a grid.
    l.rank = 1;
    l.dims[0] = l.count;
    l.strides[0][0] = 1;
    l.strides[1][0] = 2;
    code::gridDim.x = 0x7fffffff;
    code::blockDim.x = 64;
    code::blockIdx.x = static_cast<unsigned>((l.count - 1) / 64);
    code::threadIdx.x = static_cast<unsigned>((l.count - 1) % 64);
    std::vector<std::vector<std::uint64_t>> seen;
    code::for_each(l, visits{&seen});
    REQUIRE(seen.size() == 1);
    CHECK(seen[0][0] == l.count - 1);
    CHECK(seen[0][1] == 2 * (l.count - 1));
}

TEST_CASE("softmax of rows in registers of a warp or a block, and of others")
{
    std::mt19937 random(13);
    // A warp has room for 1024 elements, 64 threads for 2048.
    for (const std::uint64_t n : {1, 5, 32, 100, 1024, 1030, 2052})
        for (const std::uint64_t inner : {1, 3}) {
            CAPTURE(n);
            CAPTURE(inner);
            constexpr std::uint64_t outer = 5;
            const auto x = test::random_elements<float>(random, outer * n * inner + 1, -3, 3);
            // At an address where no pieces can be.
            const auto* const shifted = x.data() + n % 2;
            auto y = test::poisoned<float>(x.size());
            // Fewer blocks than rows.
            test::emulate_together(
                2, 64, [&] { code::softmax<code::softmax_value, float>(outer, n, inner, shifted, y.data()); });
            auto z = test::poisoned<float>(x.size());
            test::emulate_together(
                3, 32, [&] { code::softmax<code::log_softmax_value, float>(outer, n, inner, shifted, z.data()); });
            std::size_t wrong = 0;
            for (std::uint64_t o = 0; o < outer; ++o)
                for (std::uint64_t i = 0; i < inner; ++i) {
                    double sum = 0;
                    for (std::uint64_t k = 0; k < n; ++k)
                        sum += std::exp(double(shifted[(o * n + k) * inner + i]));
                    for (std::uint64_t k = 0; k < n; ++k) {
                        const auto at = (o * n + k) * inner + i;
                        const double expected = std::exp(double(shifted[at])) / sum;
                        wrong += !test::close(y[at], expected, 1e-6);
                        wrong += !test::close(z[at], std::log(expected), 3e-6);
                    }
                }
            CHECK(wrong == 0);
            CHECK(test::same_bytes(y[outer * n * inner], test::poisoned<float>(1)[0]));
        }
}

TEST_CASE("norms of rows in registers of a warp or a block, and of others")
{
    std::mt19937 random(14);
    constexpr std::uint64_t rows = 4;
    // A warp has room for 512 elements, 64 threads for 1024.
    for (const std::uint64_t columns : {1, 70, 71, 600, 1030}) {
        CAPTURE(columns);
        const auto x = test::random_elements<double>(random, rows * columns, 5, 9);
        const auto scale = test::random_elements<double>(random, columns, 1, 2);
        const auto shift = test::random_elements<double>(random, columns, -1, 1);
        auto y = test::poisoned<double>(x.size());
        auto z = test::poisoned<double>(x.size());
        test::emulate_together(2, 64, [&] {
            code::layer_norm<double>(rows, columns, x.data(), scale.data(), shift.data(), y.data(), 0.25);
        });
        test::emulate_together(2, 64,
                               [&] { code::rms_norm<double>(rows, columns, x.data(), scale.data(), z.data(), 0.25); });
        std::size_t wrong = 0;
        for (std::uint64_t r = 0; r < rows; ++r) {
            double sum = 0;
            double squares = 0;
            for (std::uint64_t k = 0; k < columns; ++k) {
                sum += x[r * columns + k];
                squares += x[r * columns + k] * x[r * columns + k];
            }
            const auto count = static_cast<double>(columns);
            const double mean = sum / count;
            const double variance = squares / count - mean * mean;
            for (std::uint64_t k = 0; k < columns; ++k) {
                const double v = x[r * columns + k];
                wrong += !test::close(y[r * columns + k], (v - mean) / std::sqrt(variance + 0.25) * scale[k] + shift[k],
                                      1e-12);
                wrong += !test::close(z[r * columns + k], v / std::sqrt(squares / count + 0.25) * scale[k], 1e-12);
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("conversions to integers are limited to their range")
{
    const auto check_target = [&]<class T>() {
        using limits = std::numeric_limits<T>;
        CHECK(code::target<T>::most == limits::max());
        CHECK(code::target<T>::least == limits::min());
        CHECK(code::target<T>::of(std::numeric_limits<float>::infinity()) == limits::max());
        CHECK(code::target<T>::of(-std::numeric_limits<double>::infinity()) == limits::min());
        CHECK(code::target<T>::of(std::numeric_limits<double>::quiet_NaN()) == 0);
        CHECK(code::target<T>::of(static_cast<double>(limits::max()) * 2) == limits::max());
        CHECK(code::target<T>::of(2.9f) == 2);
        CHECK(code::target<T>::of(-0.9) == 0);
    };
    check_target.operator()<code::i8>();
    check_target.operator()<code::i16>();
    check_target.operator()<code::i32>();
    check_target.operator()<code::i64>();
    check_target.operator()<code::u8>();
    check_target.operator()<code::u16>();
    check_target.operator()<code::u32>();
    check_target.operator()<code::u64>();
}

TEST_SUITE_END();

} // namespace test_cuda_prim_kernels
