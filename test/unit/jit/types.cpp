#include <coaccel/ops/jit/types.hpp>

#include <doctest/doctest.h>

#include <complex>

namespace test_jit_types {

namespace {

using namespace coaccel;
using detail::jit_type_of_argument;
using detail::jit_type_of_parameter;

enum class small : unsigned char { one };
enum plain : int { two };
struct four {
    float x;
};
struct eight {
    float x, y;
};
struct too_large {
    char bytes[65];
};
struct not_plain {
    not_plain(const not_plain&);
};

template <class Parameter, class Argument>
bool takes()
{
    return jit::accepts(jit_type_of_parameter<Parameter>(), jit_type_of_argument<Argument>());
}

} // namespace

TEST_SUITE_BEGIN("jit::parameter_type");

TEST_CASE("a parameter accepts only arguments of its type")
{
    CHECK(takes<float, float>());
    CHECK_FALSE(takes<float, double>());
    CHECK_FALSE(takes<float, int>());
    CHECK_FALSE(takes<int, unsigned>());
    CHECK_FALSE(takes<int, long>());
    CHECK_FALSE(takes<bool, char>());
    CHECK(takes<long, long long>());
    CHECK(takes<unsigned long, unsigned long long>());
    CHECK(takes<char, std::conditional_t<std::is_signed_v<char>, signed char, unsigned char>>());
    CHECK(takes<half, half>());
    CHECK_FALSE(takes<half, bfloat16>());
    CHECK_FALSE(takes<float, half>());

    CHECK(takes<const float*, in<float>>());
    CHECK_FALSE(takes<float*, in<float>>());
    CHECK(takes<float*, out<float>>());
    CHECK(takes<float*, inout<float>>());
    CHECK_FALSE(takes<const float*, out<float>>());
    CHECK_FALSE(takes<const float*, in<double>>());
    CHECK_FALSE(takes<const float*, float>());
    CHECK_FALSE(takes<float, in<float>>());
    CHECK(takes<const void*, in<double>>());
    CHECK_FALSE(takes<void*, in<double>>());
}

TEST_CASE("an enumerator is accepted for its underlying type")
{
    CHECK(takes<unsigned char, small>());
    CHECK(takes<int, plain>());
    CHECK_FALSE(takes<int, small>());
    CHECK(takes<small, small>());
}

TEST_CASE("structures are distinguished by their size")
{
    CHECK(takes<four, four>());
    CHECK_FALSE(takes<four, eight>());
    CHECK_FALSE(takes<float, four>());
    CHECK(takes<std::complex<float>, eight>());
    CHECK_FALSE(takes<std::complex<float>, four>());
}

TEST_CASE("a pointer to a structure accepts a buffer of any element type")
{
    CHECK(takes<const four*, in<float>>());
    CHECK(takes<const four*, in<std::uint8_t>>());
    CHECK(takes<eight*, out<double>>());
    CHECK_FALSE(takes<eight*, in<double>>());
    CHECK_FALSE(takes<four*, float>());
    CHECK_FALSE(takes<float*, out<double>>());
    CHECK_FALSE(takes<std::complex<float>*, out<float>>());
}

TEST_CASE("an unknown parameter type accepts any argument, and a partly known one its kind")
{
    const jit::parameter_type open{};
    CHECK(jit::accepts(open, jit_type_of_argument<float>()));
    CHECK(jit::accepts(open, jit_type_of_argument<in<float>>()));
    const jit::parameter_type open_pointer{jit::type_form::pointer, jit::type_code::unknown, false, 8};
    CHECK(jit::accepts(open_pointer, jit_type_of_argument<out<half>>()));
    CHECK_FALSE(jit::accepts(open_pointer, jit_type_of_argument<in<half>>()));
    CHECK_FALSE(jit::accepts(open_pointer, jit_type_of_argument<double>()));
    const jit::parameter_type open_class{jit::type_form::value, jit::type_code::structure};
    CHECK(jit::accepts(open_class, jit_type_of_argument<four>()));
    CHECK(jit::accepts(open_class, jit_type_of_argument<small>()));
    CHECK_FALSE(jit::accepts(open_class, jit_type_of_argument<int>()));
}

TEST_CASE("only plain values and operands are arguments")
{
    CHECK(jit::argument<float>);
    CHECK(jit::argument<four>);
    CHECK(jit::argument<in<half>>);
    CHECK_FALSE(jit::argument<float*>);
    CHECK_FALSE(jit::argument<ref<float>>);
    CHECK_FALSE(jit::argument<too_large>);
    CHECK_FALSE(jit::argument<not_plain>);
    CHECK_FALSE(jit::argument<long double>);
}

TEST_CASE("types have readable names")
{
    CHECK(jit::to_string(jit_type_of_argument<in<float>>()) == "const float*");
    CHECK(jit::to_string(jit_type_of_argument<out<half>>()) == "half*");
    CHECK(jit::to_string(jit_type_of_argument<std::uint64_t>()) == "unsigned long");
    CHECK(jit::to_string(jit_type_of_argument<std::complex<double>>()) == "complex<double>");
    CHECK(jit::to_string(jit_type_of_argument<bool>()) == "bool");
}

TEST_SUITE_END();

} // namespace test_jit_types
