#include "worker/protocol/plan_bindings.hpp"

#include "worker/protocol/packed_ops.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/ops/jit/launch.hpp>

#include <algorithm>
#include <cstddef>

namespace coaccel::worker {

using detail::plan_binding;
using detail::plan_data;
using detail::plan_slot;

namespace {

bool is_factor(const op_field& f) noexcept
{
    return f.variable == op_field::parameter::by_address;
}

/// Whether the last bindings, which belong to this op, include the field.
bool is_bound(const plan_data& p, std::uint32_t op, std::uint32_t field) noexcept
{
    for (auto b = p.bindings.rbegin(); b != p.bindings.rend() && b->op == op; ++b)
        if (b->field == field)
            return true;
    return false;
}

bool is_sound(const plan_data& p, const plan_binding& b) noexcept
{
    if (b.op >= p.ops.size() || b.field >= p.ops[b.op].info->fields.size() || b.slot >= p.slots.size())
        return false;
    if ((!p.bindings.empty() && b.op < p.bindings.back().op) || is_bound(p, b.op, b.field))
        return false;
    const op_field& f = p.ops[b.op].info->fields[b.field];
    const plan_slot& s = p.slots[b.slot];
    // A backend reads values from the staged inputs, where a constant is not.
    return f.variable != op_field::parameter::never && s.type == f.type && s.bytes() == f.size &&
           (s.kind == slot_kind::parameter || (s.kind == slot_kind::constant && is_factor(f)));
}

/// A GPU would read a factor without a slot from memory of this process.
error_code check_factors(const plan_data& p)
{
    for (std::size_t i = 0; i < p.bindings.size();) {
        const std::uint32_t op = p.bindings[i].op;
        const op_info& info = *p.ops[op].info;
        std::ptrdiff_t bound = 0;
        for (; i < p.bindings.size() && p.bindings[i].op == op; ++i)
            bound += is_factor(info.fields[p.bindings[i].field]);
        if (bound != 0 && bound != std::ranges::count_if(info.fields, is_factor))
            return detail::op_error(errc::invalid_argument, "plan",
                                    {"op ", op + 1, " (", info.name, "): some of its factors have no slot"});
    }
    return {};
}

} // namespace

void put_bindings(encoder& out, const plan_data& p)
{
    out.put(static_cast<std::uint32_t>(p.bindings.size()));
    for (const plan_binding& b : p.bindings) {
        out.put(b.op);
        out.put(b.field);
        out.put(b.slot);
    }
}

error_code get_bindings(decoder& in, plan_data& p)
{
    std::uint32_t count = 0;
    bool complete = in.get(count);
    p.bindings.clear();
    for (std::uint32_t i = 0; complete && i < count; ++i) {
        plan_binding b;
        complete = in.get(b.op) && in.get(b.field) && in.get(b.slot);
        if (complete && !is_sound(p, b))
            return detail::op_error(errc::invalid_argument, "plan",
                                    {"parameter value ", i, " does not match its op, field and slot"});
        p.bindings.push_back(b);
    }
    if (!complete)
        return detail::op_error(errc::invalid_argument, "plan", {"it is cut off, or a value is invalid"});
    return check_factors(p);
}

void describe_arguments(op_info& info, const detail::listed_op& o)
{
    if (info.id != jit::launch_op_id)
        return;
    const auto& head = *reinterpret_cast<const jit::launch_head*>(o.record.op.data());
    const std::size_t first_value = sizeof(head) + head.count * sizeof(jit::launch_argument);
    for (std::uint32_t i = 0; i < head.count; ++i) {
        const jit::launch_argument& a = head.arguments()[i];
        if (a.operand != jit::launch_argument::no_operand) {
            info.fields.push_back(info.operands[a.operand]);
            continue;
        }
        op_field f{detail::argument_name(i), a.offset, a.type.size, op_field::kind::value};
        const auto type = static_cast<dtype>(a.type.code);
        // A run overwrites the value, so it must not share memory with anything else.
        const bool apart = a.offset >= first_value && std::ranges::none_of(info.operands, [&](const op_field& other) {
                               return f.offset < other.offset + other.size && other.offset < f.offset + f.size;
                           });
        if (apart && a.type.form == jit::type_form::value && !a.type.enumeration && is_dtype(type) &&
            size_of(type) == a.type.size) {
            f.type = type;
            f.holds = op_field::content::number;
            f.variable = op_field::parameter::by_value;
        }
        info.fields.push_back(f);
    }
}

} // namespace coaccel::worker
