#include <coaccel/core/dtype.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>

namespace test_core_dtype {

namespace {

using namespace coaccel;

static_assert(element<half> && element<bfloat16> && element<float8_e4m3> && element<float8_e5m2>);
static_assert(element<float> && element<double> && element<std::complex<float>> && element<std::complex<double>>);
static_assert(element<std::int8_t> && element<std::uint64_t>);
static_assert(!element<std::byte> && !element<void> && !element<bool> && !element<char>);
static_assert(!element<const float> && !element<float&> && !element<long double>);

static_assert(dtype_v<half> == dtype::f16 && dtype_v<bfloat16> == dtype::bf16);
static_assert(dtype_v<float> == dtype::f32 && dtype_v<double> == dtype::f64);
static_assert(dtype_v<std::int8_t> == dtype::i8 && dtype_v<std::int16_t> == dtype::i16);
static_assert(dtype_v<std::int32_t> == dtype::i32 && dtype_v<std::int64_t> == dtype::i64);
static_assert(dtype_v<std::uint8_t> == dtype::u8 && dtype_v<std::uint16_t> == dtype::u16);
static_assert(dtype_v<std::uint32_t> == dtype::u32 && dtype_v<std::uint64_t> == dtype::u64);
static_assert(dtype_v<float8_e4m3> == dtype::f8_e4m3 && dtype_v<float8_e5m2> == dtype::f8_e5m2);
static_assert(dtype_v<std::complex<float>> == dtype::c64 && dtype_v<std::complex<double>> == dtype::c128);
static_assert(dtype_of<float>() == dtype::f32);
static_assert(element_types::size == 16 && dtype{element_types::size} == dtype::c128);

template <class... Ts>
consteval bool round_trips(type_list<Ts...>)
{
    return ((std::is_same_v<element_t<dtype_v<Ts>>, Ts> && size_of(dtype_v<Ts>) == sizeof(Ts)) && ...);
}
static_assert(round_trips(element_types{}));

struct row {
    dtype type;
    const char* name;
    std::size_t size;
    bool floating;
    bool integral;
    bool complex;
};

constexpr row rows[] = {
    {dtype::f16, "f16", 2, true, false, false},         {dtype::bf16, "bf16", 2, true, false, false},
    {dtype::f32, "f32", 4, true, false, false},         {dtype::f64, "f64", 8, true, false, false},
    {dtype::i8, "i8", 1, false, true, false},           {dtype::i16, "i16", 2, false, true, false},
    {dtype::i32, "i32", 4, false, true, false},         {dtype::i64, "i64", 8, false, true, false},
    {dtype::u8, "u8", 1, false, true, false},           {dtype::u16, "u16", 2, false, true, false},
    {dtype::u32, "u32", 4, false, true, false},         {dtype::u64, "u64", 8, false, true, false},
    {dtype::f8_e4m3, "f8_e4m3", 1, true, false, false}, {dtype::f8_e5m2, "f8_e5m2", 1, true, false, false},
    {dtype::c64, "c64", 8, false, false, true},         {dtype::c128, "c128", 16, false, false, true},
};
static_assert(std::size(rows) == element_types::size);

} // namespace

TEST_SUITE_BEGIN("dtype");

TEST_CASE("each dtype has its name, size and kind")
{
    for (const row& r : rows) {
        CAPTURE(r.name);
        CHECK(to_string(r.type) == r.name);
        CHECK(size_of(r.type) == r.size);
        CHECK(is_floating(r.type) == r.floating);
        CHECK(is_integral(r.type) == r.integral);
        CHECK(is_complex(r.type) == r.complex);
        CHECK(to_dtype(r.name).value() == r.type);
    }
}

TEST_CASE("inexact names are refused")
{
    for (const char* text : {"", "f", "F32", "f32 ", " f32", "f3", "f321", "float", "unknown", "f8"}) {
        CAPTURE(text);
        const auto d = to_dtype(text);
        REQUIRE(d.has_error());
        CHECK(d.error() == errc::invalid_argument);
    }
}

TEST_CASE("values from outside the enumeration have no size, kind or name")
{
    std::set<std::string_view> names;
    for (unsigned value = 0; value < 256; ++value) {
        const auto d = static_cast<dtype>(value);
        if (value >= 1 && value <= element_types::size) {
            CHECK(names.insert(to_string(d)).second);
            continue;
        }
        CHECK(size_of(d) == 0);
        CHECK(to_string(d) == "unknown");
        CHECK_FALSE((is_floating(d) || is_integral(d) || is_complex(d)));
    }
    CHECK(names.size() == element_types::size);
}

TEST_SUITE_END();

} // namespace test_core_dtype
