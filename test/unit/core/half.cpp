#include "small_float.hpp"

#include <coaccel/core/bfloat16.hpp>
#include <coaccel/core/half.hpp>

namespace test_core_half {

namespace {

using coaccel::half;
using namespace coaccel::small_float_checks;

constexpr layout binary16{5, 10, true};

static_assert(has_the_traits_of_a_number<half>());
static_assert(half(1.0f).bits() == 0x3c00);
static_assert(half(-2.0).bits() == 0xc000);
static_assert(half(65519.0f).bits() == 0x7bff);
static_assert(half(65520.0f).bits() == 0x7c00);
static_assert(half::convert(1e9f, coaccel::overflow_rule::saturate).bits() == 0x7bff);
static_assert(half(5.9604645e-8f).bits() == 1);
static_assert(float(half::from_bits(0x0001)) == 0x1p-24f);
static_assert(float(half::from_bits(0x03ff)) == 0x3ffp-24f);
static_assert(std::numeric_limits<half>::max() == 65504.0f);
static_assert(half(coaccel::bfloat16(0.5f)) == 0.5f);

// g++ has no _Float16 in C++ before 13 except on x86; on Arm both compilers have __fp16.
#if defined(__ARM_FP16_FORMAT_IEEE)
#define COACCEL_TEST_NATIVE_HALF
using native_half = __fp16;
#elif defined(__FLT16_MAX__) && (defined(__clang__) || defined(__x86_64__) || __GNUC__ >= 13)
#define COACCEL_TEST_NATIVE_HALF
__extension__ using native_half = _Float16;
#endif

} // namespace

TEST_SUITE_BEGIN("half");

TEST_CASE("every pattern has the value of the formula")
{
    check_decoding<half>(binary16);
}

TEST_CASE("every pattern survives the way to a wider type and back")
{
    check_round_trip<half>(binary16);
}

TEST_CASE("floats round to nearest even at every boundary")
{
    check_rounding<half, float>(binary16);
}

TEST_CASE("doubles round to nearest even at every boundary, and once")
{
    check_rounding<half, double>(binary16);
    check_single_rounding_of_doubles<half>(binary16);
}

TEST_CASE("a NaN stays a quiet NaN and keeps its sign")
{
    check_nans<half>();
}

TEST_CASE("operators round the exact result")
{
    check_arithmetic<half>(binary16, 61);
}

TEST_CASE("integers round once")
{
    check_integers<half>();
}

TEST_CASE("numeric_limits and hash agree with the values")
{
    check_limits<half>(binary16);
}

#ifdef COACCEL_TEST_NATIVE_HALF
TEST_CASE("conversions agree with the compiler's own half")
{
    tally t;
    const auto agrees = [&t](auto x) {
        const auto native = std::bit_cast<std::uint16_t>(static_cast<native_half>(x));
        t.expect(half(x).bits() == native || std::isnan(x), native);
    };
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto native = std::bit_cast<native_half>(static_cast<std::uint16_t>(bits));
        const float x = make<half>(bits);
        t.expect(x == static_cast<float>(native) || std::isnan(x), bits);
    }
    for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4093) {
        const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        agrees(x);
        agrees(double(x) * (1 + 0x1p-40));
    }
    t.report(1'000'000);
}
#endif

TEST_SUITE_END();

} // namespace test_core_half
