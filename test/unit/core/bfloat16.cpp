#include "small_float.hpp"

#include <coaccel/core/bfloat16.hpp>

namespace test_core_bfloat16 {

namespace {

using coaccel::bfloat16;
using namespace coaccel::small_float_checks;

constexpr layout brain16{8, 7, true};

static_assert(has_the_traits_of_a_number<bfloat16>());
static_assert(bfloat16(1.0f).bits() == 0x3f80);
static_assert(bfloat16(-2.0).bits() == 0xc000);
static_assert(bfloat16(std::numeric_limits<float>::max()).bits() == 0x7f80);
static_assert(bfloat16::convert(std::numeric_limits<float>::max(), coaccel::overflow_rule::saturate).bits() == 0x7f7f);
static_assert(bfloat16(1.00390625f).bits() == 0x3f80);
static_assert(bfloat16(1.01171875f).bits() == 0x3f82);
static_assert(float(bfloat16::from_bits(0x0001)) == 0x1p-133f);

// One more than a tie, in bits that a double cannot hold.
static_assert(bfloat16((std::int64_t{1} << 62) + (std::int64_t{1} << 54)).bits() == 0x5e80);
static_assert(bfloat16((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1).bits() == 0x5e81);
static_assert(bfloat16(-(std::int64_t{1} << 62) - (std::int64_t{1} << 54) - 1).bits() == 0xde81);
static_assert(bfloat16(std::numeric_limits<std::int64_t>::min()) == -0x1p63f);
static_assert(bfloat16(std::numeric_limits<std::uint64_t>::max()) == 0x1p64f);

} // namespace

TEST_SUITE_BEGIN("bfloat16");

TEST_CASE("every pattern has the value of the formula")
{
    check_decoding<bfloat16>(brain16);
}

TEST_CASE("every pattern is the upper half of its float")
{
    tally t;
    for (unsigned bits = 0; bits < brain16.patterns(); ++bits)
        t.expect(std::bit_cast<std::uint32_t>(float(make<bfloat16>(bits))) == bits << 16, bits);
    t.report(brain16.patterns());
}

TEST_CASE("every pattern survives the way to a wider type and back")
{
    check_round_trip<bfloat16>(brain16);
}

TEST_CASE("floats round to nearest even at every boundary")
{
    check_rounding<bfloat16, float>(brain16);
}

TEST_CASE("doubles round to nearest even at every boundary, and once")
{
    check_rounding<bfloat16, double>(brain16);
    check_single_rounding_of_doubles<bfloat16>(brain16);
}

TEST_CASE("a NaN stays a quiet NaN and keeps its sign")
{
    check_nans<bfloat16>();
}

TEST_CASE("operators round the exact result")
{
    check_arithmetic<bfloat16>(brain16, 61);
}

TEST_CASE("integers round once")
{
    check_integers<bfloat16>();
}

TEST_CASE("numeric_limits and hash agree with the values")
{
    check_limits<bfloat16>(brain16);
}

TEST_SUITE_END();

} // namespace test_core_bfloat16
