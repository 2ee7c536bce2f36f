#include "jit/signature.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <ostream>

namespace test_jit_signature {

namespace {

using namespace coaccel;
using jit::type_code;
using jit::type_form;

constexpr auto value = type_form::value;
constexpr auto pointer = type_form::pointer;
constexpr auto pointer_to_const = type_form::pointer_to_const;

constexpr type_code code(dtype d)
{
    return type_code(d);
}

enum class colour : std::int32_t { red };
struct pair {
    float x, y;
};

void same(const jit::launch_shape&, const float*, float*, float, std::uint32_t) {}
void other_count(const jit::launch_shape&, const float*, float*) {}
void other_const(const jit::launch_shape&, float*, float*, float, std::uint32_t) {}
void other_value(const jit::launch_shape&, const float*, float*, double, std::uint32_t) {}
void with_pair(const jit::launch_shape&, pair, colour, const half*) {}
void with_pairs(const jit::launch_shape&, const pair*) {}

} // namespace

TEST_SUITE_BEGIN("jit::signature");

TEST_CASE("the type of a parameter is read from its text")
{
    const struct {
        const char* text;
        type_form form;
        type_code what;
        int size;
    } rows[] = {
        {"float", value, code(dtype::f32), 4},
        {"double", value, code(dtype::f64), 8},
        {"bool", value, type_code::boolean, 1},
        {"char", value, code(std::is_signed_v<char> ? dtype::i8 : dtype::u8), 1},
        {"signed char", value, code(dtype::i8), 1},
        {"unsigned char", value, code(dtype::u8), 1},
        {"short", value, code(dtype::i16), 2},
        {"unsigned short", value, code(dtype::u16), 2},
        {"int", value, code(dtype::i32), 4},
        {"unsigned int", value, code(dtype::u32), 4},
        {"long", value, code(dtype::i64), 8},
        {"long long", value, code(dtype::i64), 8},
        {"unsigned long", value, code(dtype::u64), 8},
        {"unsigned long long", value, code(dtype::u64), 8},
        {"__half", value, code(dtype::f16), 2},
        {"__nv_bfloat16", value, code(dtype::bf16), 2},
        {"__nv_fp8_e4m3", value, code(dtype::f8_e4m3), 1},
        {"float2", value, code(dtype::c64), 8},
        {"cuda::std::__4::complex<double>", value, code(dtype::c128), 16},
        {"thrust::complex<float>", value, code(dtype::c64), 8},
        {"mycomplex<float>", value, type_code::structure, 0},
        {"params", value, type_code::structure, 0},
        {"list<ns::params>", value, type_code::structure, 0},
        {"ns::params", value, type_code::unknown, 0},
        {"add::value_type", value, type_code::unknown, 0},
        {"ns::id<float>::type", value, type_code::unknown, 0},
        {"decltype (f())", value, type_code::unknown, 0},
        {"float*", pointer, code(dtype::f32), 8},
        {"float const*", pointer_to_const, code(dtype::f32), 8},
        {"const float*", pointer_to_const, code(dtype::f32), 8},
        {"float const volatile*", pointer_to_const, code(dtype::f32), 8},
        {"float volatile*", pointer, code(dtype::f32), 8},
        {"__half const*", pointer_to_const, code(dtype::f16), 8},
        {"void*", pointer, type_code::nothing, 8},
        {"void const*", pointer_to_const, type_code::nothing, 8},
        {"params const*", pointer_to_const, type_code::structure, 8},
        {"float4*", pointer, type_code::structure, 8},
        {"float2*", pointer, type_code::structure, 8},
        {"double2 const*", pointer_to_const, type_code::structure, 8},
        {"cuda::std::__4::complex<float>*", pointer, code(dtype::c64), 8},
        {"ns::params const*", pointer_to_const, type_code::unknown, 8},
        {"add::value_type const*", pointer_to_const, type_code::unknown, 8},
        {"ns::id<float>::type*", pointer, type_code::unknown, 8},
        {"float const* const*", pointer_to_const, type_code::unknown, 8},
        {"float (*) [4]", value, type_code::unknown, 0},
        {"void (*)(int, int)", value, type_code::unknown, 0},
    };
    for (const auto& r : rows) {
        CAPTURE(r.text);
        const auto t = jit::parse_type(r.text);
        CHECK(t.form == r.form);
        CHECK(int(t.code) == int(r.what));
        CHECK(int(t.size) == r.size);
    }
}

TEST_CASE("the parameter list of a function is split into its parameters")
{
    const struct {
        const char* text;
        std::vector<std::string> parameters;
    } rows[] = {
        {"none()", {}},
        {"none(void)", {}},
        {"saxpy(float const*, float*, float, unsigned int)", {"float const*", "float*", "float", "unsigned int"}},
        {"void ns::scale<float>(float*, float)", {"float*", "float"}},
        {"void f<std::pair<int, int>, (mode)1>(std::pair<int, int>, int)", {"std::pair<int, int>", "int"}},
        {"(anonymous namespace)::an(float*, void (*)(int, int))", {"float*", "void (*)(int, int)"}},
        {"void f<(anonymous namespace)::t>((anonymous namespace)::t, int)", {"(anonymous namespace)::t", "int"}},
        {"arr(float (*) [4], int)", {"float (*) [4]", "int"}},
    };
    for (const auto& r : rows) {
        CAPTURE(r.text);
        const auto s = jit::parse_demangled(r.text);
        CHECK(s.known);
        REQUIRE(s.parameters.size() == r.parameters.size());
        for (std::size_t i = 0; i < r.parameters.size(); ++i)
            CHECK(s.parameters[i].text == r.parameters[i]);
    }
    CHECK_FALSE(jit::parse_demangled("a variable").known);
    CHECK_FALSE(jit::parse_demangled("broken)").known);
    CHECK_FALSE(jit::parse_demangled("").known);
}

TEST_CASE("a mangled symbol yields its parameters, and a plain one does not")
{
    const auto s = jit::parse_symbol("_ZN2ns5scaleIfEEvPKT_PS1_S1_j");
    CHECK(s.known);
    REQUIRE(s.parameters.size() == 4);
    CHECK(s.parameters[0].text == "float const*");
    CHECK(s.parameters[3].text == "unsigned int");
    CHECK_FALSE(jit::parse_symbol("saxpy").known);
    CHECK_FALSE(jit::parse_symbol("_Znonsense").known);
    CHECK_FALSE(jit::parse_symbol("").known);
}

TEST_CASE("a host function completes the types that the symbol leaves unknown")
{
    std::string why;
    auto s = jit::parse_demangled("f(pair, colour, ns::id<x>::type*)");
    // The symbol has no const there, but the host function has.
    CHECK_FALSE(jit::merge(s, jit::signature_of(jit::make_host_function(with_pair)), why));
    CHECK(why.find("argument 3") != why.npos);

    s = jit::parse_demangled("f(pair, colour, ns::id<x>::type const*)");
    REQUIRE(jit::merge(s, jit::signature_of(jit::make_host_function(with_pair)), why));
    CHECK(s.parameters[0].type.size == sizeof(pair));
    CHECK(s.parameters[1].type.enumeration);
    CHECK(int(s.parameters[2].type.code) == int(dtype::f16));

    jit::signature unknown;
    REQUIRE(jit::merge(unknown, jit::signature_of(jit::make_host_function(same)), why));
    CHECK(unknown.known);
    CHECK(unknown.parameters.size() == 4);
    CHECK(unknown.parameters[0].text == "const float*");
}

TEST_CASE("a host function may use its own structure behind a pointer, but not for plain numbers")
{
    const auto merges = [](const char* kernel) {
        auto s = jit::parse_demangled(kernel);
        std::string why;
        return jit::merge(s, jit::signature_of(jit::make_host_function(with_pairs)), why);
    };
    CHECK(merges("f(pair const*)"));
    CHECK(merges("f(float2 const*)"));
    CHECK(merges("f(ns::pair const*)"));
    CHECK_FALSE(merges("f(pair*)"));
    CHECK_FALSE(merges("f(float const*)"));
}

TEST_CASE("a host function with different parameters is refused")
{
    const auto merges = [](auto f) {
        auto s = jit::parse_demangled("saxpy(float const*, float*, float, unsigned int)");
        std::string why;
        const bool merged = jit::merge(s, jit::signature_of(jit::make_host_function(f)), why);
        CHECK(merged == why.empty());
        return merged;
    };
    CHECK(merges(same));
    CHECK_FALSE(merges(other_count));
    CHECK_FALSE(merges(other_const));
    CHECK_FALSE(merges(other_value));
}

TEST_SUITE_END();

} // namespace test_jit_signature
