#include "jit/signature.hpp"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace coaccel::jit {
namespace {

struct named_type {
    std::string_view name;
    type_code code;
};

constexpr type_code code(dtype d)
{
    return type_code(d);
}

constexpr named_type named_types[] = {
    {"bool", type_code::boolean},
    {"char", code(std::is_signed_v<char> ? dtype::i8 : dtype::u8)},
    {"signed char", code(dtype::i8)},
    {"unsigned char", code(dtype::u8)},
    {"char8_t", code(dtype::u8)},
    {"short", code(dtype::i16)},
    {"unsigned short", code(dtype::u16)},
    {"char16_t", code(dtype::u16)},
    {"int", code(dtype::i32)},
    {"unsigned int", code(dtype::u32)},
    {"wchar_t", code(dtype::i32)},
    {"char32_t", code(dtype::u32)},
    {"long", code(dtype::i64)},
    {"unsigned long", code(dtype::u64)},
    {"long long", code(dtype::i64)},
    {"unsigned long long", code(dtype::u64)},
    {"float", code(dtype::f32)},
    {"double", code(dtype::f64)},
    {"__half", code(dtype::f16)},
    {"__nv_bfloat16", code(dtype::bf16)},
    {"__nv_fp8_e4m3", code(dtype::f8_e4m3)},
    {"__nv_fp8_e5m2", code(dtype::f8_e5m2)},
    {"float2", code(dtype::c64)},
    {"double2", code(dtype::c128)},
    {"complex<float>", code(dtype::c64)},
    {"complex<double>", code(dtype::c128)},
    {"void", type_code::nothing},
};

std::string_view trim(std::string_view text)
{
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ')
        text.remove_suffix(1);
    return text;
}

bool drop_suffix(std::string_view& text, std::string_view suffix)
{
    if (!text.ends_with(suffix))
        return false;
    text = trim(text.substr(0, text.size() - suffix.size()));
    return true;
}

bool drop_prefix(std::string_view& text, std::string_view prefix)
{
    if (!text.starts_with(prefix))
        return false;
    text = trim(text.substr(prefix.size()));
    return true;
}

int depth_change(char c)
{
    return c == '<' || c == '(' || c == '[' || c == '{' ? 1 : c == '>' || c == ')' || c == ']' || c == '}' ? -1 : 0;
}

bool is_qualified(std::string_view name)
{
    int depth = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        depth += depth_change(name[i]);
        if (depth == 0 && name.substr(i).starts_with("::"))
            return true;
    }
    return false;
}

type_code parse_name(std::string_view text)
{
    // The demangler prints dependent types as in the template, without resolving them.
    if (text.empty() || text.find(">::") != text.npos || text.find("decltype") != text.npos ||
        text.find_first_of("[(*&") != text.npos)
        return type_code::unknown;
    for (const auto& t : named_types)
        if (t.name == text)
            return t.code;
    // CCCL, Thrust and the standard library each have one, in their own inline namespaces.
    for (const std::string_view complex : {"complex<float>", "complex<double>"})
        if (text.ends_with(complex) && text.substr(0, text.size() - complex.size()).ends_with("::"))
            return code(complex == "complex<float>" ? dtype::c64 : dtype::c128);
    // "add::value_type" may be a class in a namespace, or an alias for float inside a class.
    return is_qualified(text) ? type_code::unknown : type_code::structure;
}

bool is_vague(type_code c)
{
    return c == type_code::unknown || c == type_code::structure || c == type_code::nothing;
}

// Finds the start of the last parameter list: a name may contain other parentheses, such as "(anonymous namespace)".
std::size_t opening_of(std::string_view function, std::size_t closing)
{
    int depth = 0;
    for (std::size_t i = closing + 1; i-- > 0;) {
        depth -= depth_change(function[i]);
        if (depth == 0)
            return i;
    }
    return function.npos;
}

} // namespace

parameter_type parse_type(std::string_view text)
{
    text = trim(text);
    if (!drop_suffix(text, "*")) {
        const auto code = parse_name(text);
        const auto size = code == type_code::boolean ? 1 : size_of(dtype(code));
        return {type_form::value, code, false, static_cast<std::uint8_t>(size)};
    }
    bool is_const = false;
    bool is_more = true;
    while (is_more) {
        const bool found = drop_suffix(text, " const") || drop_prefix(text, "const ");
        is_const |= found;
        is_more = found || drop_suffix(text, " volatile") || drop_prefix(text, "volatile ");
    }
    // Behind a pointer, pairs of plain numbers and complex numbers look the same.
    const bool is_pair = text == "float2" || text == "double2";
    const auto code = is_pair ? type_code::structure : parse_name(text);
    return {is_const ? type_form::pointer_to_const : type_form::pointer, code, false, 8};
}

signature parse_demangled(std::string_view function)
{
    const auto closing = function.rfind(')');
    const auto opening = closing == function.npos ? closing : opening_of(function, closing);
    if (opening == function.npos)
        return {};
    signature made{true, {}};
    auto rest = function.substr(opening + 1, closing - opening - 1);
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= rest.size(); ++i) {
        if (i < rest.size() && (rest[i] != ',' || depth != 0)) {
            depth += depth_change(rest[i]);
            continue;
        }
        const auto text = trim(rest.substr(begin, i - begin));
        if (!text.empty() && text != "void")
            made.parameters.push_back({parse_type(text), std::string(text)});
        begin = i + 1;
    }
    return made;
}

signature parse_symbol(const std::string& symbol)
{
    if (!symbol.starts_with("_Z"))
        return {};
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr), &std::free);
    return text ? parse_demangled(text.get()) : signature{};
}

signature signature_of(const host_function& f)
{
    if (!f)
        return {};
    signature made{true, {}};
    for (const auto type : f.parameters)
        made.parameters.push_back({type, to_string(type)});
    return made;
}

bool merge(signature& kernel, const signature& host, std::string& why)
{
    if (!kernel.known)
        kernel = host;
    if (!host.known)
        return true;
    if (kernel.parameters.size() != host.parameters.size()) {
        why = "the kernel takes " + std::to_string(kernel.parameters.size()) + " arguments, its host function " +
              std::to_string(host.parameters.size());
        return false;
    }
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        auto& k = kernel.parameters[i];
        const auto& h = host.parameters[i];
        if (accepts(k.type, h.type)) {
            if (is_vague(k.type.code))
                k.type = h.type;
            continue;
        }
        why = "argument " + std::to_string(i + 1) + ": the kernel takes '" + k.text + "', its host function '" +
              h.text + "'";
        return false;
    }
    return true;
}

} // namespace coaccel::jit
