#include "small_float.hpp"

#include <coaccel/core/float8.hpp>

#include <type_traits>

namespace test_core_float8 {

namespace {

using coaccel::float8_e4m3;
using coaccel::float8_e5m2;
using coaccel::overflow_rule;
using namespace coaccel::small_float_checks;

template <class T>
constexpr layout layout_of = std::is_same_v<T, float8_e4m3> ? layout{4, 3, false} : layout{5, 2, true};

static_assert(has_the_traits_of_a_number<float8_e4m3>());
static_assert(float8_e4m3(1.0f).bits() == 0x38);
static_assert(float8_e4m3(448.0f).bits() == 0x7e);
static_assert(float8_e4m3(-1e9).bits() == 0xfe);
static_assert(float8_e4m3(std::numeric_limits<float>::infinity()).bits() == 0x7e);
static_assert(float8_e4m3::convert(464.0f, overflow_rule::nonfinite).bits() == 0x7e);
static_assert(float8_e4m3::convert(464.00003f, overflow_rule::nonfinite).bits() == 0x7f);
static_assert(float8_e4m3::convert(-1e9f, overflow_rule::nonfinite).bits() == 0xff);
static_assert(float8_e4m3(0x1p-9f).bits() == 1);
static_assert(float8_e4m3(0x1p-10f).bits() == 0);
static_assert(float8_e4m3(300) == 288.0f);

static_assert(has_the_traits_of_a_number<float8_e5m2>());
static_assert(float8_e5m2(1.0f).bits() == 0x3c);
static_assert(float8_e5m2(57344.0f).bits() == 0x7b);
static_assert(float8_e5m2(-1e9).bits() == 0xfb);
static_assert(float8_e5m2(std::numeric_limits<float>::infinity()).bits() == 0x7b);
static_assert(float8_e5m2::convert(61439.0f, overflow_rule::nonfinite).bits() == 0x7b);
static_assert(float8_e5m2::convert(61440.0f, overflow_rule::nonfinite).bits() == 0x7c);
static_assert(float8_e5m2::convert(-1e9f, overflow_rule::nonfinite).bits() == 0xfc);
static_assert(float8_e5m2(0x1p-16f).bits() == 1);
static_assert(float8_e5m2(0x1p-17f).bits() == 0);

} // namespace

TEST_SUITE_BEGIN("float8");

TEST_CASE_TEMPLATE("every pattern has the value of the formula", T, float8_e4m3, float8_e5m2)
{
    check_decoding<T>(layout_of<T>);
}

TEST_CASE_TEMPLATE("every pattern survives the way to a wider type and back", T, float8_e4m3, float8_e5m2)
{
    check_round_trip<T>(layout_of<T>);
}

TEST_CASE_TEMPLATE("floats round to nearest even at every boundary", T, float8_e4m3, float8_e5m2)
{
    check_rounding<T, float>(layout_of<T>);
}

TEST_CASE_TEMPLATE("doubles round to nearest even at every boundary, and once", T, float8_e4m3, float8_e5m2)
{
    check_rounding<T, double>(layout_of<T>);
    check_single_rounding_of_doubles<T>(layout_of<T>);
}

TEST_CASE_TEMPLATE("a NaN stays a quiet NaN and keeps its sign", T, float8_e4m3, float8_e5m2)
{
    check_nans<T>();
}

TEST_CASE_TEMPLATE("operators round the exact result", T, float8_e4m3, float8_e5m2)
{
    check_arithmetic<T>(layout_of<T>, 1);
}

TEST_CASE_TEMPLATE("integers round once", T, float8_e4m3, float8_e5m2)
{
    check_integers<T>();
}

TEST_CASE_TEMPLATE("numeric_limits and hash agree with the values", T, float8_e4m3, float8_e5m2)
{
    check_limits<T>(layout_of<T>);
}

TEST_SUITE_END();

} // namespace test_core_float8
