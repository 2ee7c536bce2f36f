#include "prim/order_slices.hpp"
#include "support/emulated_kernels.hpp"
#include "support/prim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace test_cuda_prim_compact_kernels {

// The kernels of ops that keep some elements, and of histograms, compiled as C++.
namespace {

namespace code = coaccel_prim;

constexpr unsigned threads = 64;

static_assert(sizeof(code::kept) == coaccel::prim::kept_bytes);
static_assert(code::most_shared_bins == coaccel::prim::most_shared_bins);

code::order_slices sliced(std::uint64_t n, std::uint64_t length)
{
    return {(n - 1) / length + 1, length};
}

/// Calls `kernel(launch, parts)` as often as the op launches it.
template <class Kernel>
void launch_all(const code::order_slices& s, const Kernel& kernel)
{
    std::vector<code::kept> parts(s.count);
    for (const code::u64 launch : {0, 1, 2, 3})
        if (s.count > 1 || launch >= 2)
            test::emulate_together(2, threads, [&] { kernel(launch, parts.data()); });
}

/// Runs of random lengths.
std::vector<code::i16> runs(std::mt19937& random, std::uint64_t n, std::uint64_t longest)
{
    std::vector<code::i16> made;
    for (code::i16 value = 0; made.size() < n; ++value)
        made.insert(made.end(), std::min<std::uint64_t>(n - made.size(), 1 + random() % longest), value);
    return made;
}

} // namespace

TEST_SUITE_BEGIN("prim compact kernels");

TEST_CASE("select in any number of slices")
{
    std::mt19937 random(92);
    for (const std::uint64_t n : {1, 64, 1200})
        for (const std::uint64_t length : {64, 700, 5000})
            for (const unsigned density : {0, 1, 3})
                for (const std::uint64_t room : {n + 5, std::uint64_t(20)}) {
                    CAPTURE(n);
                    CAPTURE(length);
                    CAPTURE(density);
                    const auto x = test::random_bits<code::i16>(random, n);
                    std::vector<code::u8> mask(n);
                    for (auto& m : mask)
                        m = static_cast<code::u8>(density > 0 && random() % density == 0 ? 1 + random() % 255 : 0);
                    auto y = test::poisoned<code::i16>(room + 1);
                    code::u64 count = 77;
                    const auto s = sliced(n, length);
                    launch_all(s, [&](code::u64 launch, code::kept* parts) {
                        code::select<code::i16>(launch, n, room, s, x.data(), mask.data(), y.data(), &count, parts);
                    });
                    std::vector<code::i16> expected;
                    for (std::uint64_t i = 0; i < n; ++i)
                        if (mask[i] != 0)
                            expected.push_back(x[i]);
                    CHECK(count == expected.size());
                    expected.resize(room);
                    expected.push_back(test::poisoned<code::i16>(1)[0]);
                    CHECK(y == expected);
                }
}

TEST_CASE("runs that end anywhere in the slices, warps and rows")
{
    std::mt19937 random(93);
    for (const std::uint64_t n : {1, 33, 1201})
        for (const std::uint64_t length : {64, 700, 5000})
            for (const std::uint64_t longest : {1, 40, 3000})
                for (const std::uint64_t room : {n + 5, std::uint64_t(7)}) {
                    CAPTURE(n);
                    CAPTURE(length);
                    CAPTURE(longest);
                    const auto x = runs(random, n, longest);
                    const auto s = sliced(n, length);
                    auto y = test::poisoned<code::i16>(room);
                    auto values = y;
                    std::vector<code::u64> lengths(room, 99);
                    code::u64 different = 0;
                    code::u64 count = 0;
                    launch_all(s, [&](code::u64 launch, code::kept* parts) {
                        code::unique<code::i16>(launch, n, room, s, x.data(), y.data(), &different, parts);
                    });
                    launch_all(s, [&](code::u64 launch, code::kept* parts) {
                        code::run_length<code::i16>(launch, n, room, s, x.data(), values.data(), lengths.data(), &count,
                                                    parts);
                    });
                    // The values count the runs.
                    const auto expected = static_cast<std::uint64_t>(x.back()) + 1;
                    CHECK(different == expected);
                    CHECK(count == expected);
                    CHECK(values == y);
                    std::size_t wrong = 0;
                    for (std::uint64_t i = 0; i < room; ++i) {
                        const auto value = static_cast<code::i16>(i);
                        wrong += y[i] != (i < expected ? value : 0);
                        wrong +=
                            lengths[i] != (i < expected ? std::uint64_t(std::count(x.begin(), x.end(), value)) : 0);
                    }
                    CHECK(wrong == 0);
                }
}

TEST_CASE("all NaN are one run, and so are both zeros")
{
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x{0.0f, -0.0f, 1.0f, nan, -nan, code::float_of(0x7f800001u), 1.0f};
    const auto s = sliced(x.size(), 64);
    std::vector<float> values(8);
    std::vector<code::u64> lengths(8);
    code::u64 count = 0;
    launch_all(s, [&](code::u64 launch, code::kept* parts) {
        code::run_length<float>(launch, x.size(), 8, s, x.data(), values.data(), lengths.data(), &count, parts);
    });
    CHECK(count == 4);
    CHECK(lengths == std::vector<code::u64>{2, 1, 3, 1, 0, 0, 0, 0});
}

TEST_CASE("histograms of few and of many bins, in any number of slices")
{
    std::mt19937 random(94);
    for (const std::uint64_t n : {1, 300, 1000})
        for (const std::uint64_t length : {70, 1000})
            for (const std::uint64_t bins : {1, 13, 8192, 8193}) {
                CAPTURE(n);
                CAPTURE(length);
                CAPTURE(bins);
                // The last bins too.
                auto x = test::random_elements<double>(random, n, -20, 120);
                x.back() = static_cast<double>(bins) - 0.5;
                // The borders are whole numbers.
                const code::histogram_shape shape{n, bins, 0, static_cast<double>(bins)};
                std::vector<code::u64> counts(bins + 1, 5);
                for (const code::u64 launch : {0, 1})
                    test::emulate_together(2, threads, [&] {
                        code::histogram<double>(launch, shape, sliced(n, length), x.data(), counts.data());
                    });
                std::vector<code::u64> expected(bins + 1);
                expected.back() = 5;
                for (const double v : x)
                    if (v >= 0 && v < static_cast<double>(bins))
                        ++expected[static_cast<std::size_t>(v)];
                CHECK(counts == expected);
            }
}

TEST_SUITE_END();

} // namespace test_cuda_prim_compact_kernels
