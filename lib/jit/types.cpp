#include <coaccel/ops/jit/types.hpp>

namespace coaccel::jit {
namespace {

// The element types of dtype, in its order.
constexpr const char* element_names[] = {
    "half",        "bfloat16",    "float",          "double",          "signed char",  "short",
    "int",         "long",        "unsigned char",  "unsigned short",  "unsigned int", "unsigned long",
    "float8_e4m3", "float8_e5m2", "complex<float>", "complex<double>",
};

static_assert(std::size(element_names) == element_types::size);

bool is_element(type_code c) noexcept
{
    return c >= type_code::f16 && c <= type_code::c128;
}

// Types that are classes on the device: a caller's class may have the same bytes.
bool is_class(type_code c) noexcept
{
    if (!is_element(c))
        return c == type_code::structure;
    const auto d = dtype(c);
    return d != dtype::f32 && d != dtype::f64 && !is_integral(d);
}

const char* to_string(type_code c) noexcept
{
    if (is_element(c))
        return element_names[std::size_t(c) - 1];
    switch (c) {
    case type_code::boolean: return "bool";
    case type_code::structure: return "a structure";
    case type_code::nothing: return "void";
    default: return "any type";
    }
}

// Buffers hold elements, not structures, so a pointer to a structure accepts a buffer of any elements.
bool accepts_target(type_code parameter, type_code argument) noexcept
{
    return parameter == argument || parameter == type_code::unknown || parameter == type_code::nothing ||
           parameter == type_code::structure;
}

} // namespace

std::string to_string(parameter_type t)
{
    if (t.form == type_form::value)
        return t.enumeration ? std::string("an enumeration of ") + to_string(t.code) : to_string(t.code);
    return std::string(t.form == type_form::pointer_to_const ? "const " : "") + to_string(t.code) + "*";
}

bool accepts(parameter_type parameter, parameter_type argument) noexcept
{
    if (parameter.size != 0 && argument.size != 0 && parameter.size != argument.size)
        return false;
    if (parameter.form == type_form::value && parameter.code == type_code::unknown)
        return true;
    if (parameter.form != argument.form)
        return false;
    if (parameter.form != type_form::value)
        return accepts_target(parameter.code, argument.code);
    if (parameter.code == type_code::structure)
        return argument.code == type_code::structure || argument.enumeration;
    if (argument.code == type_code::structure)
        return is_class(parameter.code);
    return parameter.code == argument.code;
}

} // namespace coaccel::jit
