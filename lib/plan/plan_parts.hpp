#ifndef COACCEL_PLAN_PLAN_PARTS_HPP
#define COACCEL_PLAN_PLAN_PARTS_HPP

#include "jit/image.hpp"

#include <coaccel/core/result.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/ops/rand/generator.hpp>
#include <coaccel/plan/detail/plan_data.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The steps by which a draft becomes a plan, and what they share.
namespace coaccel::detail {

/// A plan with its own copies of the slots of its set that its ops use; unchanged if it belongs to no set.
struct joined_draft {
    plan_draft draft;
    /// For each slot: its index in the set; own_slot for a slot of the plan itself.
    std::vector<std::uint32_t> from;

    static constexpr std::uint32_t own_slot = own_state;
};

joined_draft join_common_slots(const plan_draft& draft);

/// The most bytes of arguments that a run copies through pinned memory of its instance, for each direction. Parameters
/// are copied in any case.
inline constexpr std::uint64_t most_staged_bytes = std::uint64_t(1) << 20;

/// Whether a run copies this argument itself, or ops before and after it do.
inline bool is_staged(const plan_data& plan, const plan_slot& s) noexcept
{
    const byte_range& r = s.kind == slot_kind::output ? plan.staged_outputs : plan.staged_inputs;
    return s.offset < r.offset + r.bytes;
}

/// Checks a draft, whose refs name slots of its builder.
COACCEL_DECL error_code check_plan(const plan_draft& draft);

/// Makes a plan of a draft: checks it, arranges its memory and computes its id.
COACCEL_DECL result<std::shared_ptr<const plan_data>> make_plan(const plan_draft& draft);

/// Arranges the memory of an instance. Errors: errc::size_overflow.
COACCEL_DECL error_code lay_out(plan_data& plan);

/// Gives the ops generators of their own, because runs are not ordered with other ops that use a generator.
void make_own_generators(std::vector<listed_op>& ops);

/// Sets a field that is a parameter to a value for which the op reads all its operands: one for a factor, because
/// zero would make it skip some; zero for an argument of a kernel.
void store_neutral_value(const op_field& f, std::byte* value) noexcept;

/// A GPU reads all factors of an op from device memory, or none of them. Where some are parameters, this makes
/// constants of the others. Errors: errc::invalid_argument if the plan has too many slots then.
error_code add_fixed_scalars(plan_data& plan);

/// Whether add_fixed_scalars has made the slot. Such slots are the last ones.
bool is_fixed_scalar(const plan_data& plan, std::uint32_t slot) noexcept;

/// The bindings of an op.
std::span<const plan_binding> bindings_of(const plan_data& plan, std::size_t op) noexcept;
/// The binding of a field; null if it has a fixed value.
const plan_binding* binding_of(const plan_data& plan, std::size_t op, std::size_t field) noexcept;

/// The content of a constant, or the initial content of a state; null if the slot has none.
inline const plan_content* slot_content(const plan_data& plan, const plan_slot& s) noexcept
{
    if (s.kind == slot_kind::constant)
        return &plan.constant_contents[s.index];
    return s.kind == slot_kind::state && plan.state_contents[s.index].data ? &plan.state_contents[s.index] : nullptr;
}

/// The id of a plan. Everything else in it is final.
content_id identify(const plan_data& plan);

/// Errors: errc::invalid_argument if there are no plans, or a name is empty or is there twice. `names` are those of the
/// plans, without the name of the set.
error_code check_plan_names(const std::string& set, const std::vector<std::string_view>& names);

/// Makes a set of plans whose names are valid. set_plan::states has any numbers that identify the states of the set, in
/// the order in which common states get their own.
plan_set_description make_plan_set(std::string name, std::vector<set_plan> plans);

/// The name of a plan with that of its set, as in "model.decode".
std::string name_in_set(const std::string& set, const std::string& plan);

std::string plan_text(const plan_data& plan);
std::string plan_graphviz(const plan_data& plan);

std::string plan_set_text(const plan_set_data& set);
std::string plan_set_graphviz(const plan_set_data& set);

/// Numbers the generators of a plan in the order of their first use, because their own ids are valid only within the
/// process.
class generator_numbers {
public:
    /// From 1.
    std::size_t number(const rand::generator& g);

private:
    std::map<std::uint64_t, std::size_t> known_;
};

/// The value of a field that is not an operand, in readable form.
std::string value_text(const op_field& field, const void* value, generator_numbers& numbers);

/// "plan NAME", or "plan" without a name: the beginning of messages.
std::string plan_label(const std::string& name);
/// "plan set NAME", or "plan set" without a name.
std::string set_label(const std::string& name);

/// A member of the data of a description; an empty value if there are no data.
template <class Data, class T>
const T& value_or_empty(const std::shared_ptr<const Data>& data, T Data::* member) noexcept
{
    static const T empty{};
    return data ? (*data).*member : empty;
}

inline const std::byte* field_data(const listed_op& o, const op_field& f) noexcept
{
    return reinterpret_cast<const std::byte*>(o.record.op.data()) + f.offset;
}

inline any_ref ref_of(const listed_op& o, const op_field& f) noexcept
{
    any_ref r;
    std::memcpy(&r, field_data(o, f), sizeof(r));
    return r;
}

/// Whether the operand is an element of a list and has no buffer. Texts and files leave it out: a list of two products
/// has 90 of them. The names of such operands end with an index.
inline bool is_unused_element(const op_field& f, const any_ref& r) noexcept
{
    return has_none(f, r) && f.name.ends_with(']');
}

/// How the op uses the operand, given the values of its fields.
inline access mode_of(const listed_op& o, const op_field& f) noexcept
{
    const bool only_written =
        f.mode == access::read_write && o.info->overwrites && o.info->overwrites(o.record.op.data());
    return only_written ? access::write : f.mode;
}

/// Why the op cannot be part of a CUDA graph.
inline capture_obstacle obstacle_of(const listed_op& o) noexcept
{
    return o.info->find_obstacle(o.record.op.data());
}

inline bool reads(access a) noexcept
{
    return a != access::write;
}

/// The head of a launch; null for another op.
inline const jit::launch_head* as_launch(const listed_op& o) noexcept
{
    const bool is = o.info->id == jit::launch_op_id;
    return is ? reinterpret_cast<const jit::launch_head*>(o.record.op.data()) : nullptr;
}

/// The image of a launch that passed its check.
inline const jit::image& image_of(const listed_op& launch) noexcept
{
    return *static_cast<const jit::image*>(launch.record.kept.get());
}

/// The head of a call of a plug-in; null for another op.
inline const plugin::call_head* as_call(const listed_op& o) noexcept
{
    const bool is = o.info->id == plugin::call_op_id;
    return is ? reinterpret_cast<const plugin::call_head*>(o.record.op.data()) : nullptr;
}

/// Whether an error of the op's own check depends on the plug-in of the device, which may be loaded in another process.
/// Such an error is reported when a device loads the plan.
inline bool depends_on_plugin(const listed_op& o, errc what) noexcept
{
    return as_call(o) && (what == errc::function_missing || what == errc::function_version);
}

} // namespace coaccel::detail

#endif
