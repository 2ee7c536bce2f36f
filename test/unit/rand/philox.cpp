#include "rand/philox.hpp"

#include "rand/sequence.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace test_rand_philox {

namespace {

using namespace coaccel;
using namespace coaccel::rand;

template <class Op>
Op op_of(std::uint64_t count, algorithm a = algorithm::philox)
{
    Op op;
    op.from = rand::make_generator({.algorithm = a});
    op.dst.raw.size = count;
    return op;
}

} // namespace

TEST_SUITE_BEGIN("philox");

TEST_CASE("philox gives the results that its authors publish")
{
    CHECK(philox(0, {0, 0, 0, 0}) == philox_block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
          philox_block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
          philox_block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the subsequences of philox take turns, four words at a time")
{
    constexpr std::uint64_t seed = 99;
    CHECK(philox_words(seed, 0) == philox_at(seed, 0, 0));
    CHECK(philox_words(seed, 1) == philox_at(seed, 1, 0));
    CHECK(philox_words(seed, 65535) == philox_at(seed, 65535, 0));
    CHECK(philox_words(seed, 65536) == philox_at(seed, 0, 1));
    CHECK(philox_words(seed, 3 * 65536 + 5) == philox_at(seed, 5, 3));
}

TEST_CASE("numbers of 64 bits use two blocks of a subsequence before the next subsequence")
{
    constexpr std::uint64_t seed = 7;
    CHECK(philox_wide_words(seed, 0, 0) == philox_at(seed, 0, 0));
    CHECK(philox_wide_words(seed, 0, 1) == philox_at(seed, 0, 1));
    CHECK(philox_wide_words(seed, 0, 2) == philox_at(seed, 1, 0));
    CHECK(philox_wide_words(seed, 0, 2 * 65536) == philox_at(seed, 0, 2));
    CHECK(philox_wide_words(seed, 4 * 65535, 0) == philox_at(seed, 65535, 0));
    CHECK(philox_wide_words(seed, 4 * 65535, 2) == philox_at(seed, 0, 1));
}

TEST_CASE("no op uses words of philox that another one uses")
{
    for (const std::uint64_t start : {0ull, 1ull, 5ull, 262143ull, 262144ull, 1000001ull})
        for (const std::uint64_t count : {1ull, 2ull, 1001ull, 262144ull, 300000ull}) {
            CAPTURE(start);
            CAPTURE(count);
            const auto wide = op_of<uniform<double>>(count);
            const auto next = position_after(wide, start);
            // The words of later ops are those of rounds from this one on.
            REQUIRE(next % philox_round_words == 0);
            const std::uint64_t round = next / philox_round_words;
            std::uint64_t last = 0;
            for (std::uint64_t half = 0; half <= (start % 4 + count - 1) / 2; ++half) {
                const std::uint64_t thread = half / 2 % philox_subsequences;
                const std::uint64_t first = start / 4 + thread;
                last = std::max(last, first / philox_subsequences + 2 * (half / 2 / philox_subsequences) + half % 2);
            }
            CHECK(last < round);
        }
}

TEST_CASE("the position of a generator advances by what an op uses")
{
    CHECK(position_after(op_of<bits<std::uint32_t>>(5), 10) == 15);
    CHECK(position_after(op_of<bits<std::uint64_t>>(5), 10) == 20);
    CHECK(position_after(op_of<uniform<float>>(5), 10) == 15);
    CHECK(position_after(op_of<normal<float>>(5), 10) == 15);
    CHECK(position_after(op_of<poisson>(5), 10) == 15);
    CHECK(position_after(op_of<uniform<double>>(5), 0) == 2 * philox_round_words);
    CHECK(position_after(op_of<normal<double>>(5), 1) == 2 * philox_round_words);
    CHECK(position_after(op_of<log_normal<double>>(5), 4) == 3 * philox_round_words);
    CHECK(position_after(op_of<uniform<double>>(5, algorithm::xorwow), 10) == 15);
    CHECK(position_after(op_of<bits<std::uint64_t>>(5, algorithm::mt19937), 10) == 15);
}

TEST_SUITE_END();

} // namespace test_rand_philox
