#include "plan/file/packed_arguments.hpp"

#include <coaccel/core/detail/field_names.hpp>

namespace coaccel::detail {
namespace {

using jit::launch_argument;

constexpr std::size_t aligned(std::size_t n) noexcept
{
    return (n + sizeof(op_unit) - 1) / sizeof(op_unit) * sizeof(op_unit);
}

bool names_memory(const op_field& f) noexcept
{
    return f.what == op_field::kind::operand;
}

/// Describes an argument that is not an operand by its value.
bool describe_value(const node& n, op_field& f, file_problem& problem)
{
    f.size = static_cast<std::uint16_t>(n.data.size());
    f.type = n.type;
    switch (n.kind) {
    case node_kind::boolean:
        f.holds = op_field::content::boolean;
        f.type = number_type<bool>();
        return true;
    case node_kind::number: f.holds = op_field::content::number; return true;
    case node_kind::enumerator: f.holds = op_field::content::enumeration; return true;
    case node_kind::bytes:
        f.holds = op_field::content::bytes;
        f.type = dtype::u8;
        if (!n.data.empty() && n.data.size() <= jit::max_argument_bytes)
            return true;
        break;
    default: break;
    }
    return problem.invalid({f.name, " is ", describe(n)});
}

/// Describes an operand by its record, which is checked when it is read.
bool describe_operand(const node& n, op_field& f, file_problem& problem)
{
    f.what = op_field::kind::operand;
    f.size = sizeof(any_ref);
    record_fields from(n, problem);
    std::string mode, type;
    if (!from.get("mode", mode) || !from.get("type", type))
        return false;
    f.mode = mode == "in" ? access::read : mode == "out" ? access::write : access::read_write;
    const auto found = to_dtype(type);
    if (!found)
        return problem.invalid({f.name, " has an unknown element type"});
    f.type = found.value();
    return true;
}

/// Describes an argument, and returns its value; null after a problem.
const node* describe_argument(const node& n, op_field& f, file_problem& problem)
{
    if (n.kind != node_kind::record || n.items.size() != 1) {
        problem.invalid({f.name, " is ", describe(n)});
        return nullptr;
    }
    const node& value = n.items[0];
    bool good = false;
    if (value.name == "operand" && value.kind == node_kind::record)
        good = describe_operand(value, f, problem);
    else if (value.name == "generator") {
        f.holds = op_field::content::generator;
        f.size = sizeof(rand::generator);
        good = true;
    } else if (value.name == "value")
        good = describe_value(value, f, problem);
    else
        problem.invalid({f.name, " is neither an operand nor a value"});
    return good ? &value : nullptr;
}

void complete(op_info& info, const jit::launch_head&)
{
    info.id = jit::launch_op_id;
    info.name = "jit.launch";
    info.lib = library::jit;
    info.obstacle = capture_obstacle::none;
    for (op_field& f : info.fields)
        if (f.what == op_field::kind::value && f.holds == op_field::content::number)
            f.variable = op_field::parameter::by_value;
    info.work = [](const void* op) noexcept { return static_cast<const jit::launch_head*>(op)->work(); };
    info.check = [](const void* op) { return jit::check_launch(*static_cast<const jit::launch_head*>(op)); };
}

void complete(op_info& info, const plugin::call_head&)
{
    info.id = plugin::call_op_id;
    info.name = "plugin.call";
    info.lib = library::user;
    info.work = [](const void* op) noexcept { return static_cast<const plugin::call_head*>(op)->work(); };
    info.check = [](const void* op) { return plugin::check_call(*static_cast<const plugin::call_head*>(op)); };
}

} // namespace

jit::parameter_type type_in_file(const op_field& f) noexcept
{
    using jit::type_code;
    using jit::type_form;
    const auto size = static_cast<std::uint8_t>(f.size);
    if (names_memory(f))
        return {f.mode == access::read ? type_form::pointer_to_const : type_form::pointer, type_code(f.type), false,
                sizeof(void*)};
    switch (f.holds) {
    case op_field::content::boolean: return {type_form::value, type_code::boolean, false, size};
    case op_field::content::number: return {type_form::value, type_code(f.type), false, size};
    case op_field::content::enumeration: return {type_form::value, type_code(f.type), true, size};
    case op_field::content::generator:
    case op_field::content::bytes: break;
    }
    return {type_form::value, type_code::structure, false, size};
}

const op_field* write_arguments(tree_writer& out, op_value_writer& values, const listed_op& o,
                                std::span<const launch_argument> arguments)
{
    out["arguments"].begin_list();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const op_field& f = o.info->fields[i];
        if (arguments[i].type != type_in_file(f))
            return &f;
        out.begin_record();
        if (names_memory(f)) {
            out["operand"];
            values.operand(f, ref_of(o, f));
        } else {
            out[f.holds == op_field::content::generator ? "generator" : "value"];
            values.value(f, field_data(o, f));
        }
        out.end();
    }
    out.end();
    return nullptr;
}

template <class Head>
bool read_arguments(const node& list, Head head, op_value_reader& values, file_problem& problem, packed_read& made)
{
    const std::size_t count = list.items.size();
    if (count > jit::max_arguments)
        return problem.invalid({"it has ", count, " arguments, the limit is ", jit::max_arguments});
    made.own = std::make_shared<packed_description>();
    op_info& info = made.own->info;
    std::vector<launch_argument> arguments(count);
    std::vector<const node*> nodes(count);
    // Structures may need any alignment up to this one.
    std::size_t at = aligned(sizeof(Head) + count * sizeof(launch_argument));
    for (std::size_t i = 0; i < count; ++i) {
        op_field f{argument_name(i), static_cast<std::uint32_t>(at), 0, op_field::kind::value};
        nodes[i] = describe_argument(list.items[i], f, problem);
        if (!nodes[i])
            return false;
        arguments[i] = {static_cast<std::uint16_t>(at),
                        names_memory(f) ? static_cast<std::uint8_t>(info.operands.size()) : launch_argument::no_operand,
                        type_in_file(f)};
        if (names_memory(f))
            info.operands.push_back(f);
        info.fields.push_back(f);
        at += aligned(f.size);
    }
    complete(info, head);
    info.size = static_cast<std::uint32_t>(at);
    head.count = static_cast<std::uint32_t>(count);
    made.op.assign(op_units(at), {});
    auto* const to = reinterpret_cast<std::byte*>(made.op.data());
    std::memcpy(to, &head, sizeof(head));
    if (count != 0)
        std::memcpy(to + sizeof(head), arguments.data(), count * sizeof(launch_argument));
    for (std::size_t i = 0; i < count; ++i)
        if (!values.read(*nodes[i], info.fields[i], to + info.fields[i].offset))
            return false;
    return true;
}

template bool read_arguments(const node&, jit::launch_head, op_value_reader&, file_problem&, packed_read&);
template bool read_arguments(const node&, plugin::call_head, op_value_reader&, file_problem&, packed_read&);

} // namespace coaccel::detail
