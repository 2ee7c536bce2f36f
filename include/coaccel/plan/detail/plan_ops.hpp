#ifndef COACCEL_PLAN_DETAIL_PLAN_OPS_HPP
#define COACCEL_PLAN_DETAIL_PLAN_OPS_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/plan/detail/plan_data.hpp>

#include <cstdint>
#include <span>

// The ops by which a device loads, runs and unloads the instances of a plan. They contain addresses of this process and
// are therefore not part of the public API.
namespace coaccel::detail {

/// An argument that the run copies itself.
struct run_argument {
    std::byte* host = nullptr;
    /// In the memory of the instance.
    byte_range where;
};

/// The id of load ops, whose descriptions differ between plans.
inline constexpr std::uint64_t plan_load_id = hash("plan.load");

/// The beginning of a load op. The refs of its operands follow: the memory of the instance, then the constants, then
/// the states, then, if the plan has states, one ref for each state that the ops may change while they are run for the
/// first time. All have the element type u8, except the buffers of a graph, which have that of their slots.
struct plan_load_head {
    /// Identifies the instance within its context.
    std::uint64_t instance = 0;
    /// Runs and loads with the same chain run in the order in which they were started: they share the workspaces of
    /// libraries, and the states of a plan. From 1.
    std::uint64_t chain = 0;
    /// Lives until the instance is unloaded or the context is destroyed.
    const plan_data* plan = nullptr;

    const any_ref* refs() const noexcept { return reinterpret_cast<const any_ref*>(this + 1); }
};

static_assert(sizeof(plan_load_head) % alignof(any_ref) == 0);

/// The operands of a load op, by position.
struct plan_load_operands {
    explicit plan_load_operands(const plan_data& p) noexcept
        : constants(1), states(constants + p.constants.size()), spare_states(states + p.states.size()),
          count(spare_states + p.states.size())
    {}

    static constexpr std::size_t instance = 0;
    std::size_t constants;
    std::size_t states;
    std::size_t spare_states;
    std::size_t count;
};

/// The reply of a load op.
struct plan_loaded {
    /// The run is one command of the stream, such as a graph; otherwise its ops are put there one by one.
    std::uint8_t recorded = 0;
};

/// The description of a load op for this plan, which must exist for as long as the description.
COACCEL_DECL op_info make_load_info(const plan_data& p);

/// The slot of a graph for which operand i of a load op is given; null: it has the element type u8.
COACCEL_DECL const plan_slot* graph_slot_of(const plan_data& p, std::size_t i) noexcept;

/// For bound_op::reply of a run op, which may be null: the time that the backend measured.
struct plan_ran {
    /// Zero: this run was not measured.
    std::uint64_t nanoseconds = 0;
};

/// Runs an instance. The run of a graph has the refs of its buffers behind this struct, and is described by graph_run.
struct plan_run_op {
    using reply = void;
    static constexpr std::string_view name = "plan.run";
    static constexpr library lib = library::plan;
    static constexpr bool uses_callers_memory = true;

    inout<std::uint8_t> memory{};
    std::uint64_t instance = 0;
    std::uint64_t chain = 0;
    const run_argument* inputs = nullptr;
    const run_argument* outputs = nullptr;
    std::uint32_t input_count = 0;
    std::uint32_t output_count = 0;

    std::span<const run_argument> staged_inputs() const noexcept { return {inputs, input_count}; }
    std::span<const run_argument> staged_outputs() const noexcept { return {outputs, output_count}; }

    std::uint64_t state() const noexcept { return chain; }
    std::uint64_t work() const noexcept { return instance; }
    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(plan_run_op, (), (memory, instance, chain, inputs, outputs, input_count, output_count), (), ())
};

/// Releases what the backend holds for an instance. Its memory is a buffer and is released like any other.
struct plan_unload_op {
    using reply = void;
    static constexpr std::string_view name = "plan.unload";
    static constexpr library lib = library::plan;

    std::uint64_t instance = 0;
    std::uint64_t chain = 0;

    std::uint64_t state() const noexcept { return chain; }
    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(plan_unload_op, (), (instance, chain), (), ())
};

/// The address of the memory that a ref to a slot names, given the addresses of a load op's operands in the order of
/// plan_load_operands; null for an optional operand without a slot. `states`: the position of the states to use.
inline void* slot_address(const plan_data& p, const any_ref& r, void* const* operands, std::size_t states) noexcept
{
    if (r.is_none())
        return nullptr;
    const plan_slot& s = p.slots[r.slot];
    std::size_t which = plan_load_operands::instance;
    if (s.kind == slot_kind::constant)
        which = plan_load_operands(p).constants + s.index;
    else if (s.kind == slot_kind::state)
        which = states + s.index;
    return static_cast<std::byte*>(operands[which]) + (s.in_instance() ? s.offset : 0) + r.offset * size_of(r.type);
}

/// The slot as an operand of an op would name it.
inline any_ref whole_slot(const plan_data& p, std::uint32_t slot) noexcept
{
    const plan_slot& s = p.slots[slot];
    return {.device = plan_device, .slot = slot, .size = s.count, .type = s.type};
}

} // namespace coaccel::detail

#endif
