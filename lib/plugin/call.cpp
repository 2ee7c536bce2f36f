#include "plugin/plugins.hpp"

#include <coaccel/ops/plugin.hpp>

#include <algorithm>
#include <array>

namespace coaccel::plugin {
namespace {

using jit::launch_argument;
using jit::type_code;

// The plug-in interface does not include these headers, so check that its values agree.
static_assert(int(type::f32) == int(dtype::f32) && int(type::f64) == int(dtype::f64));
static_assert(int(type::i8) == int(dtype::i8) && int(type::i8) + 3 == int(dtype::i64));
static_assert(int(type::u8) == int(dtype::u8) && int(type::u8) + 3 == int(dtype::u64));
static_assert(int(type::boolean) == int(type_code::boolean) && int(type::other) == int(type_code::structure));
static_assert(max_parameters == jit::max_arguments && max_value_bytes == jit::max_argument_bytes);

form form_of(const launch_argument& a) noexcept
{
    if (a.operand == launch_argument::no_operand)
        return form::value;
    return a.type.form == jit::type_form::pointer_to_const ? form::read : form::write;
}

std::size_t size_of_one(const launch_argument& a) noexcept
{
    return a.operand == launch_argument::no_operand ? a.type.size : size_of(dtype(a.type.code));
}

// Neither a number nor an enumeration: a function declares those by their own type.
bool is_class(type_code c) noexcept
{
    switch (dtype(c)) {
    case dtype::f16:
    case dtype::bf16:
    case dtype::f8_e4m3:
    case dtype::f8_e5m2:
    case dtype::c64:
    case dtype::c128: return true;
    default: return c == type_code::structure;
    }
}

bool takes(const parameter& p, const launch_argument& a) noexcept
{
    // A read-only parameter accepts a writable buffer.
    const form given = form_of(a);
    const bool fits = given == p.form || (given == form::write && p.form == form::read);
    if (!fits || p.size != size_of_one(a))
        return false;
    if (p.type != type::other)
        return int(p.type) == int(a.type.code);
    // Buffers hold elements, not structures, so a buffer parameter of type `other` accepts any elements.
    return p.form != form::value || is_class(a.type.code);
}

std::string text_of(form f, int code, std::size_t size)
{
    const jit::parameter_type plain{.code = type_code(code)};
    const std::string what = code == int(type_code::structure) ? "a class of " + std::to_string(size) + " bytes"
                                                               : "'" + jit::to_string(plain) + "'";
    switch (f) {
    case form::value: return what;
    case form::read: return "a buffer to read of " + what;
    case form::write: return "a buffer to write of " + what;
    }
    return what;
}

error_code mismatch(const function& f, const std::string& why)
{
    return make_error_with_message(errc::argument_mismatch, "plugin.call: " + std::string(f.name) + ": " + why);
}

error_code unknown(const call_head& head)
{
    return make_error_with_message(errc::function_missing,
                                   std::string("plugin.call: no plug-in has a function named ") + head.function +
                                       (any_loaded() ? "" : ", because device_options::plugin is null"));
}

error_code check_version(const loaded_function& f, const call_head& head)
{
    if (head.version == 0 || head.version == f.version)
        return {};
    return make_error_with_message(errc::function_version,
                                   "plugin.call: " + std::string(f.what->name) + ": the call needs version " +
                                       std::to_string(head.version) + " of the function, the plug-in has version " +
                                       std::to_string(f.version));
}

error_code check_arguments(const function& f, const call_head& head)
{
    if (f.parameter_count != head.count)
        return mismatch(f, "the function takes " + std::to_string(f.parameter_count) + " arguments, given " +
                               std::to_string(head.count));
    for (std::uint32_t i = 0; i < head.count; ++i) {
        const parameter& p = f.parameters[i];
        const launch_argument& a = head.arguments()[i];
        if (!takes(p, a))
            return mismatch(f, "argument " + std::to_string(i + 1) + ": the function takes " +
                                   text_of(p.form, int(p.type), p.size) + ", given " +
                                   text_of(form_of(a), int(a.type.code), size_of_one(a)));
    }
    return {};
}

} // namespace

call_head make_head(std::string_view function, version wanted, std::size_t count) noexcept
{
    call_head head;
    // A name that is too long leaves no terminating zero, which `check_call` detects.
    std::ranges::copy(function.substr(0, call_head::room), head.function);
    head.count = static_cast<std::uint32_t>(count);
    head.version = wanted.number;
    return head;
}

error_code check_call(const call_head& head)
{
    if (head.function[0] == 0)
        return make_error_with_message(errc::invalid_argument, "plugin.call: the name of the function is empty");
    if (std::ranges::find(head.function, '\0') == std::end(head.function))
        return make_error_with_message(errc::invalid_argument, "plugin.call: the name of the function has more than " +
                                                                   std::to_string(call_head::room - 1) + " characters");
    const loaded_function f = find(head.function);
    if (!f)
        return unknown(head);
    // First, because the arguments of another version may be other ones.
    if (auto ec = check_version(f, head))
        return ec;
    return check_arguments(*f.what, head);
}

error_code run(const bound_op& o, const native_stream& where) noexcept
{
    const auto& head = o.as<call_head>();
    const function* const f = find(head.function).what;
    if (!f)
        return unknown(head);
    std::array<argument, max_parameters> arguments{};
    auto* base = const_cast<char*>(static_cast<const char*>(o.op));
    for (std::uint32_t i = 0; i < head.count; ++i) {
        const launch_argument& a = head.arguments()[i];
        if (a.operand == launch_argument::no_operand)
            arguments[i] = {base + a.offset, a.type.size};
        else
            arguments[i] = {o.operands[a.operand], reinterpret_cast<const any_ref*>(base + a.offset)->size};
    }
    char why[256]{};
    if (f->call(f->target, {where.backend.data(), where.handle}, arguments.data(), why, sizeof(why) - 1) != 0)
        return make_error_with_message(errc::user_exception, "plugin.call: " + std::string(f->name) + ": " + why);
    return {};
}

} // namespace coaccel::plugin
