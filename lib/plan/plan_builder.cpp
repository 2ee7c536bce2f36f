#include "plan/content_hash.hpp"
#include "plan/content_registry.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>

namespace coaccel {
namespace {

using detail::plan_content;
using detail::plan_draft;
using detail::plan_slot;

/// Identifies a builder in its refs. Zero is used in finished plans.
std::uint32_t next_builder() noexcept
{
    static std::atomic<std::uint32_t> last{0};
    std::uint32_t made = 0;
    while (made == 0)
        made = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return made;
}

/// Remembers the first problem of a draft.
void refuse(plan_draft& draft, errc what, std::initializer_list<detail::message_part> parts)
{
    if (draft.problem != errc{})
        return;
    std::string text = detail::plan_label(draft.name) + ": ";
    for (const auto& p : parts)
        p.append_to(text);
    draft.message = std::move(text);
    draft.problem = what;
}

std::string default_name(slot_kind kind, std::uint32_t index)
{
    return std::string(to_string(kind)) + std::to_string(index + 1);
}

/// Whether a slot with these properties can be added.
bool accept_slot(plan_draft& draft, const plan_slot& s)
{
    if (draft.slots.size() == plan_builder::max_slots) {
        refuse(draft, errc::invalid_argument, {s.name, ": a plan has at most ", plan_builder::max_slots, " slots"});
        return false;
    }
    if (s.count == 0) {
        refuse(draft, errc::invalid_argument, {s.name, ": count is 0"});
        return false;
    }
    const auto size = detail::allocate_op{.count = s.count, .type = s.type}.bytes();
    if (!size || *size >> 63 != 0) {
        refuse(draft, errc::size_overflow,
               {s.name, ": count is ", s.count, ", too many elements of ", size_of(s.type), " bytes"});
        return false;
    }
    return true;
}

/// Whether the dimensions of an input or output are right.
bool accept_shape(plan_draft& draft, const plan_slot& s)
{
    if (!s.shape) {
        refuse(draft, errc::invalid_argument, {s.name, ": the shape has no dimensions"});
        return false;
    }
    for (const plan_slot& other : draft.slots)
        if (s.shape.batched && other.shape.batched && s.shape.dims[0] != other.shape.dims[0]) {
            refuse(draft, errc::invalid_argument,
                   {s.name, ": the shape has ", s.shape.dims[0], " rows, that of ", other.name, " has ",
                    other.shape.dims[0]});
            return false;
        }
    return true;
}

plan_slot make_slot(const plan_draft& draft, slot_kind kind, dtype type, std::uint64_t count, std::string name)
{
    const std::uint32_t index = draft.counts[std::size_t(kind)];
    return {.name = name.empty() ? default_name(kind, index) : std::move(name),
            .kind = kind,
            .type = type,
            .count = count,
            .index = index};
}

any_ref append(plan_draft& draft, plan_slot&& s, plan_content&& content)
{
    const any_ref made{.device = detail::plan_device,
                       .generation = draft.builder,
                       .slot = static_cast<std::uint32_t>(draft.slots.size()),
                       .size = s.count,
                       .type = s.type};
    const auto kind = std::size_t(s.kind);
    // Room for the content first, so that nothing can fail once the slot is added.
    if (draft.contents.size() == draft.contents.capacity())
        draft.contents.reserve(2 * draft.contents.size() + 8);
    draft.slots.push_back(std::move(s));
    draft.contents.push_back(std::move(content));
    ++draft.counts[kind];
    return made;
}

/// Whether the field of the op that is added now can have this slot as its value. The index of the field is then set.
bool accept_field(plan_draft& draft, const op_info& info, const detail::bound_field& given, std::uint32_t& field)
{
    const std::string op = "op " + std::to_string(draft.ops.size() + 1) + " (" + info.name + "): ";
    const auto found = std::ranges::find(info.fields, given.offset, &op_field::offset);
    if (found == info.fields.end()) {
        refuse(draft, errc::invalid_argument, {op, "the field at byte ", given.offset, " is not described"});
        return false;
    }
    const auto refused = [&](errc what, std::initializer_list<detail::message_part> parts) {
        std::string text = op + std::string(found->name);
        for (const auto& p : parts)
            p.append_to(text);
        refuse(draft, what, {text});
        return false;
    };
    if (found->variable == op_field::parameter::never)
        return refused(errc::invalid_argument, {" cannot be a parameter"});
    const any_ref& slot = given.slot;
    if (!detail::names_slot(slot))
        return refused(errc::invalid_argument, {" names no parameter"});
    if (slot.generation != draft.builder || slot.slot >= draft.slots.size())
        return refused(errc::invalid_argument, {" names a parameter of another builder"});
    const plan_slot& s = draft.slots[slot.slot];
    if (s.kind != slot_kind::parameter)
        return refused(errc::invalid_argument, {" names ", s.name, ", which is not a parameter"});
    if (s.type != found->type || s.bytes() != found->size)
        return refused(errc::wrong_dtype,
                       {" takes ", to_string(found->type), ", ", s.name, " is of type ", to_string(s.type)});
    field = static_cast<std::uint32_t>(found - info.fields.begin());
    for (auto b = draft.bindings.rbegin(); b != draft.bindings.rend() && b->op == draft.ops.size(); ++b)
        if (b->field == field)
            return refused(errc::invalid_argument, {" has two parameters"});
    return true;
}

/// What a refused slot returns. Its ops need no error of their own, because finish() returns the first one.
any_ref refused_slot(dtype type) noexcept
{
    return {.type = type};
}

} // namespace

plan_builder::plan_builder(std::string name)
{
    draft_.name = std::move(name);
    draft_.builder = next_builder();
}

plan_builder::plan_builder(plan_builder&&) noexcept = default;
plan_builder& plan_builder::operator=(plan_builder&&) noexcept = default;
plan_builder::~plan_builder() = default;

any_ref plan_builder::add_slot(slot_kind kind, dtype type, std::uint64_t count, std::string name)
{
    auto s = make_slot(draft_, kind, type, count, std::move(name));
    return accept_slot(draft_, s) ? append(draft_, std::move(s), {}) : refused_slot(type);
}

any_ref plan_builder::add_shaped(slot_kind kind, dtype type, plan_shape shape, std::string name)
{
    auto s = make_slot(draft_, kind, type, shape.count(), std::move(name));
    s.shape = std::move(shape);
    return accept_shape(draft_, s) && accept_slot(draft_, s) ? append(draft_, std::move(s), {}) : refused_slot(type);
}

any_ref plan_builder::add_copy(slot_kind kind, dtype type, std::span<const std::byte> bytes, std::string name)
{
    auto s = make_slot(draft_, kind, type, bytes.size() / size_of(type), std::move(name));
    if (!accept_slot(draft_, s))
        return refused_slot(type);
    const auto copy = std::make_shared_for_overwrite<std::byte[]>(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    plan_content content{.data = {copy, copy.get()},
                         .bytes = bytes.size(),
                         .id = detail::hash_content(bytes.data(), bytes.size()),
                         .identity = {}};
    return append(draft_, std::move(s), std::move(content));
}

any_ref plan_builder::add_content(slot_kind kind, dtype type, std::uint64_t count,
                                  std::shared_ptr<const std::byte> data, std::string name)
{
    auto s = make_slot(draft_, kind, type, count, std::move(name));
    if (!accept_slot(draft_, s))
        return refused_slot(type);
    const auto id = detail::hash_content(data.get(), s.bytes());
    plan_content content{.data = std::move(data), .bytes = s.bytes(), .id = id, .identity = {}};
    return append(draft_, std::move(s), std::move(content));
}

any_ref plan_builder::made_durable(const any_ref& state, durable how)
{
    if (!detail::names_slot(state))
        return state;
    plan_slot& s = draft_.slots[state.slot];
    if (how.rule > suspect_rule::fail)
        refuse(draft_, errc::invalid_argument,
               {s.name, ": rule is ", static_cast<unsigned>(how.rule), ", not a suspect_rule"});
    s.durable = how.rule;
    return state;
}

void plan_builder::add_op(const op_info& info, const void* op, std::shared_ptr<const void> kept,
                          std::span<const detail::bound_field> bound)
{
    if (draft_.ops.size() == max_ops)
        return refuse(draft_, errc::invalid_argument,
                      {"op ", max_ops + 1, " (", info.name, "): a plan has at most ", max_ops, " ops"});
    const bool writes_something = std::ranges::any_of(info.operands, [](const op_field& f) { return writes(f.mode); });
    if (info.reply_size != 0 && !writes_something)
        refuse(draft_, errc::invalid_argument,
               {"op ", draft_.ops.size() + 1, " (", info.name,
                "): its reply is its only effect, but a plan returns no replies"});
    detail::listed_op made{&info, {}};
    made.record.assign(info, op);
    made.record.kept = std::move(kept);
    const std::size_t bindings = draft_.bindings.size();
    try {
        for (const detail::bound_field& given : bound) {
            std::uint32_t field = 0;
            if (!accept_field(draft_, info, given, field))
                break;
            detail::store_neutral_value(info.fields[field],
                                        reinterpret_cast<std::byte*>(made.record.op.data()) + given.offset);
            draft_.bindings.push_back({static_cast<std::uint32_t>(draft_.ops.size()), field, given.slot.slot});
        }
        draft_.ops.push_back(std::move(made));
    } catch (...) {
        draft_.bindings.resize(bindings);
        throw;
    }
}

result<plan_description> plan_builder::finish() const
{
    BOOST_OUTCOME_TRY(auto made, detail::make_plan(draft_));
    return detail::plan_access::make(std::move(made));
}

namespace detail {
namespace {

/// In a finished plan the refs do not identify the builder.
void normalize_refs(listed_op& o) noexcept
{
    for (const op_field& f : o.info->operands) {
        any_ref r = ref_of(o, f);
        r.generation = 0;
        std::memcpy(reinterpret_cast<std::byte*>(o.record.op.data()) + f.offset, &r, sizeof(r));
    }
}

void list_slots(plan_data& plan, const plan_draft& draft)
{
    for (std::uint32_t i = 0; i < plan.slots.size(); ++i)
        switch (plan.slots[i].kind) {
        case slot_kind::input: plan.inputs.push_back(i); break;
        case slot_kind::parameter: plan.parameters.push_back(i); break;
        case slot_kind::output: plan.outputs.push_back(i); break;
        case slot_kind::constant:
            plan.constants.push_back(i);
            plan.constant_contents.push_back(identify_content(draft.contents[i]));
            break;
        case slot_kind::state:
            plan.states.push_back(i);
            plan.state_contents.push_back(draft.contents[i]);
            break;
        case slot_kind::scratch: break;
        }
}

} // namespace

void make_own_generators(std::vector<listed_op>& ops)
{
    std::map<std::uint64_t, rand::generator> own;
    for (listed_op& o : ops)
        for (const op_field& f : o.info->fields) {
            if (f.holds != op_field::content::generator)
                continue;
            rand::generator g;
            std::memcpy(&g, field_data(o, f), sizeof(g));
            auto found = own.find(g.id());
            if (found == own.end())
                found = own.emplace(g.id(), rand::make_generator(g.options())).first;
            std::memcpy(reinterpret_cast<std::byte*>(o.record.op.data()) + f.offset, &found->second, sizeof(g));
        }
}

std::size_t plan_data::first_impure() const noexcept
{
    auto marked = marked_pure.begin();
    for (std::size_t i = 0; i < ops.size(); ++i)
        if (marked != marked_pure.end() && *marked == i)
            ++marked;
        else if (!ops[i].info->pure)
            return i;
    return ops.size();
}

result<std::shared_ptr<const plan_data>> make_plan(const plan_draft& draft)
{
    if (draft.common) {
        if (draft.common->problem != errc{})
            return make_error_with_message(draft.common->problem, draft.common->message);
        return make_plan(join_common_slots(draft).draft);
    }
    if (draft.problem != errc{})
        return make_error_with_message(draft.problem, draft.message);
    if (auto ec = check_plan(draft))
        return ec;
    auto made = std::make_shared<plan_data>();
    made->name = draft.name;
    made->slots = draft.slots;
    made->ops = draft.ops;
    for (listed_op& o : made->ops)
        normalize_refs(o);
    make_own_generators(made->ops);
    list_slots(*made, draft);
    made->bindings = draft.bindings;
    made->marked_pure = draft.marked_pure;
    if (auto ec = add_fixed_scalars(*made))
        return ec;
    if (auto ec = lay_out(*made))
        return ec;
    made->id = identify(*made);
    return std::shared_ptr<const plan_data>(std::move(made));
}

} // namespace detail
} // namespace coaccel
