#include "plan/content_hash.hpp"
#include "plan/content_registry.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::detail {
namespace {

template <class... Ts>
void store_one(dtype type, std::byte* to, type_list<Ts...>) noexcept
{
    const auto store = [to](const auto& one) { std::memcpy(to, &one, sizeof(one)); };
    ((type == dtype_v<Ts> ? store(static_cast<Ts>(1.0f)) : void()), ...);
}

/// A constant with the value of this field; one for equal values.
std::uint32_t fixed_scalar(plan_data& plan, std::vector<std::uint32_t>& made, const listed_op& o, const op_field& f)
{
    const content_id id = hash_content(field_data(o, f), f.size);
    for (const std::uint32_t i : made) {
        const plan_slot& s = plan.slots[i];
        if (s.type == f.type && plan.constant_contents[s.index].id == id)
            return i;
    }
    const auto copy = std::make_shared_for_overwrite<std::byte[]>(f.size);
    std::memcpy(copy.get(), field_data(o, f), f.size);
    const auto slot = static_cast<std::uint32_t>(plan.slots.size());
    plan.slots.push_back({.name = "scalar" + std::to_string(made.size() + 1),
                          .kind = slot_kind::constant,
                          .type = f.type,
                          .count = 1,
                          .index = static_cast<std::uint32_t>(plan.constants.size())});
    plan.constants.push_back(slot);
    plan.constant_contents.push_back(
        identify_content({.data = {copy, copy.get()}, .bytes = f.size, .id = id, .identity = {}}));
    made.push_back(slot);
    return slot;
}

} // namespace

void store_neutral_value(const op_field& f, std::byte* value) noexcept
{
    std::memset(value, 0, f.size);
    if (f.variable == op_field::parameter::by_address)
        store_one(f.type, value, element_types{});
}

error_code add_fixed_scalars(plan_data& plan)
{
    std::vector<plan_binding> all;
    std::vector<std::uint32_t> made;
    for (std::size_t i = 0; i < plan.bindings.size(); ++i) {
        all.push_back(plan.bindings[i]);
        const std::uint32_t op = plan.bindings[i].op;
        if (i + 1 < plan.bindings.size() && plan.bindings[i + 1].op == op)
            continue;
        const auto& fields = plan.ops[op].info->fields;
        for (std::uint32_t f = 0; f < fields.size(); ++f)
            if (fields[f].variable == op_field::parameter::by_address && !binding_of(plan, op, f))
                all.push_back({op, f, fixed_scalar(plan, made, plan.ops[op], fields[f])});
    }
    plan.bindings = std::move(all);
    if (plan.slots.size() <= plan_builder::max_slots)
        return {};
    return op_error(errc::invalid_argument, plan_label(plan.name),
                    {"it has ", plan.slots.size(), " slots with the constants beside its parameters, at most ",
                     plan_builder::max_slots});
}

bool is_fixed_scalar(const plan_data& plan, std::uint32_t slot) noexcept
{
    return plan.slots[slot].kind == slot_kind::constant &&
           std::ranges::find(plan.bindings, slot, &plan_binding::slot) != plan.bindings.end();
}

std::span<const plan_binding> bindings_of(const plan_data& plan, std::size_t op) noexcept
{
    // Not equal_range, whose result clang 14 cannot use.
    const auto& all = plan.bindings;
    const auto first = std::ranges::lower_bound(all, static_cast<std::uint32_t>(op), {}, &plan_binding::op);
    const auto last = std::ranges::upper_bound(all, static_cast<std::uint32_t>(op), {}, &plan_binding::op);
    return {all.data() + (first - all.begin()), static_cast<std::size_t>(last - first)};
}

const plan_binding* binding_of(const plan_data& plan, std::size_t op, std::size_t field) noexcept
{
    for (const plan_binding& b : bindings_of(plan, op))
        if (b.field == field)
            return &b;
    return nullptr;
}

} // namespace coaccel::detail
