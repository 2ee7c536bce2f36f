#include "core/escape_text.hpp"
#include "plan/plan_parts.hpp"

#include <algorithm>

namespace coaccel::detail {
namespace {

std::string text_of(const jit::dim3& d)
{
    return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

std::string text_of(const plan_data& plan, const any_ref& r)
{
    if (r.is_none())
        return "none";
    return escape_text(plan.slots[r.slot].name) + " [" + std::to_string(r.offset) + ", " +
           std::to_string(r.offset + r.size) + ")";
}

/// The place or the content of a slot.
std::string details(const plan_data& plan, const plan_slot& s)
{
    const plan_content* const content = slot_content(plan, s);
    switch (s.kind) {
    case slot_kind::constant: return "content " + to_string(content->id);
    case slot_kind::state: {
        const std::string start = "starts with " + (content ? to_string(content->id) : std::string("zeros"));
        return s.durable ? start + ", durable, if suspect: " + std::string(to_string(*s.durable)) : start;
    }
    default: {
        const std::string place = "at byte " + std::to_string(s.offset);
        return s.shape ? "shape " + to_string(s.shape) + ", " + place : place;
    }
    }
}

std::string text_of(const plan_data& plan, const plan_slot& s)
{
    return escape_text(s.name) + ": " + std::string(to_string(s.kind)) + " of " + std::to_string(s.count) + " " +
           std::string(to_string(s.type)) + ", " + details(plan, s) + "\n";
}

std::string text_of(const plan_data& plan, std::size_t at, generator_numbers& numbers)
{
    const listed_op& o = plan.ops[at];
    std::string made = o.info->name;
    std::string_view separator = ": ";
    const auto add = [&](std::string_view name, const std::string& value) {
        made.append(separator).append(name).append(" = ").append(value);
        separator = ", ";
    };
    if (const auto* launch = as_launch(o)) {
        add("kernel", escape_text(image_of(o).name));
        add("grid", text_of(launch->shape.grid));
        add("block", text_of(launch->shape.block));
        add("shared_bytes", std::to_string(launch->shape.shared_bytes));
    }
    if (const auto* call = as_call(o)) {
        add("function", escape_text(call->function));
        if (call->version != 0)
            add("version", std::to_string(call->version));
    }
    for (std::size_t i = 0; i < o.info->fields.size(); ++i) {
        const op_field& f = o.info->fields[i];
        if (const plan_binding* b = binding_of(plan, at, i)) {
            add(f.name, escape_text(plan.slots[b->slot].name));
        } else if (f.what != op_field::kind::operand) {
            add(f.name, value_text(f, field_data(o, f), numbers));
        } else if (const any_ref r = ref_of(o, f); !is_unused_element(f, r)) {
            add(f.name, text_of(plan, r));
        }
    }
    if (const capture_obstacle why = obstacle_of(o); why != capture_obstacle::none)
        made.append("; cannot be captured: ").append(to_string(why));
    return made + "\n";
}

std::string repeatable_text(const plan_data& plan)
{
    if (plan.repeatable())
        return "repeatable\n";
    if (plan.has_state() || plan.over_buffers)
        return "not repeatable: it changes memory that later runs use\n";
    const std::size_t op = plan.first_impure();
    return "not repeatable: op " + std::to_string(op + 1) + " (" + plan.ops[op].info->name +
           ") is not known to be pure\n";
}

/// The first line.
std::string title(const std::string& label, const content_id& id)
{
    return escape_text(label) + ", id " + to_string(id) + "\n";
}

} // namespace

std::string plan_text(const plan_data& plan)
{
    std::string made = title(plan_label(plan.name), plan.id);
    for (const plan_slot& s : plan.slots)
        made += text_of(plan, s);
    generator_numbers numbers;
    for (std::size_t i = 0; i < plan.ops.size(); ++i)
        made += "op " + std::to_string(i + 1) + ": " + text_of(plan, i, numbers);
    return made + repeatable_text(plan);
}

std::string plan_set_text(const plan_set_data& set)
{
    std::string made = title(set_label(set.name), set.id);
    for (std::uint32_t i = 0; i < set.users.size(); ++i) {
        std::string users;
        for (const set_plan& p : set.plans) {
            const auto found = std::ranges::find(p.states, i);
            if (found == p.states.end())
                continue;
            const plan_data& plan = *plan_access::data(p.plan);
            const plan_slot& s = plan.slots[plan.states[static_cast<std::size_t>(found - p.states.begin())]];
            // The first one gives the description, without the end of its line.
            if (users.empty()) {
                made += "common " + text_of(plan, s);
                made.pop_back();
            }
            users += (users.empty() ? ", used by " : " and ") + escape_text(p.name);
        }
        made += users + "\n";
    }
    for (const set_plan& p : set.plans)
        made += plan_text(*plan_access::data(p.plan));
    return made;
}

} // namespace coaccel::detail
