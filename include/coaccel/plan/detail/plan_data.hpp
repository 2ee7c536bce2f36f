#ifndef COACCEL_PLAN_DETAIL_PLAN_DATA_HPP
#define COACCEL_PLAN_DETAIL_PLAN_DATA_HPP

#include <coaccel/core/op_list.hpp>
#include <coaccel/plan/plan_shape.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel {

/// What the memory of a plan's slot is for.
enum class slot_kind : std::uint8_t {
    input,     ///< Copied from the caller's memory at each run.
    output,    ///< Copied to the caller's memory at each run.
    constant,  ///< Uploaded once.
    scratch,   ///< Memory of one run.
    state,     ///< Keeps its content from run to run.
    parameter, ///< A number that each run brings along, for fields of ops.
};

/// The number of kinds of slots.
inline constexpr std::size_t slot_kind_count = static_cast<std::size_t>(slot_kind::parameter) + 1;

/// The enumerator's name, such as "input"; "unknown" for a value that is not a slot_kind.
COACCEL_DECL std::string_view to_string(slot_kind k) noexcept;

/// What becomes of a durable state that may have been half-written when a context was lost.
enum class suspect_rule : std::uint8_t {
    keep,  ///< It keeps the content that it has.
    reset, ///< It gets its initial content again.
    /// Runs complete with errc::buffer_suspect until plan::async_revive was called, after which the state keeps the
    /// content that it has.
    fail,
};

/// The enumerator's name, such as "keep"; "unknown" for a value that is not a suspect_rule.
COACCEL_DECL std::string_view to_string(suspect_rule r) noexcept;

/// Makes a state of a plan durable: its content outlives the contexts of the device.
struct durable {
    suspect_rule rule = suspect_rule::fail; ///< For a content that cannot be relied on.
};

/// The identity of a plan or of a constant: a hash of its content.
struct content_id {
    std::uint64_t high = 0; ///< The upper half.
    std::uint64_t low = 0;  ///< The lower half.

    friend auto operator<=>(const content_id&, const content_id&) = default;
};

/// 32 hexadecimal digits.
///
/// Exceptions: std::bad_alloc when there is no memory.
COACCEL_DECL std::string to_string(const content_id& id);

namespace detail {

/// The value of any_ref::device in a ref to a slot of a plan. any_ref::slot is then the index of the slot.
/// any_ref::generation identifies the builder; in a finished plan it is zero.
inline constexpr std::uint32_t plan_device = 0xffffffff;

constexpr bool names_slot(const any_ref& r) noexcept
{
    return r.device == plan_device;
}

/// Slots start at a multiple of this, which suits every vendor library.
inline constexpr std::uint64_t slot_alignment = 256;

/// Larger arguments are not copied by the run itself, but by ops before and after it.
inline constexpr std::uint64_t largest_staged_argument = std::uint64_t(256) << 10;

struct plan_slot {
    std::string name;
    slot_kind kind = slot_kind::scratch;
    dtype type = dtype::u8;
    /// In elements.
    std::uint64_t count = 0;
    /// Inputs, parameters, outputs and scratch: where it begins in the memory of an instance, in bytes. Constants and
    /// states have buffers of their own; in a graph, the ops use nothing before this byte of the slot.
    std::uint64_t offset = 0;
    /// Its position among the slots of its kind.
    std::uint32_t index = 0;
    /// Of a durable state; empty for other slots.
    std::optional<suspect_rule> durable{};
    /// Of an input or output, if it was given.
    plan_shape shape{};

    std::uint64_t bytes() const noexcept { return count * size_of(type); }
    bool in_instance() const noexcept { return kind != slot_kind::constant && kind != slot_kind::state; }
};

class mapped_file;

/// Host memory with the content of a constant, or the initial content of a state.
struct plan_content {
    std::shared_ptr<const std::byte> data;
    std::uint64_t bytes = 0;
    content_id id;
    /// Of a constant in a finished plan: the same object for equal bytes, also in different plans; see
    /// identify_content.
    std::shared_ptr<const void> identity;
    /// The file whose mapping `data` belongs to, and keeps; null: it is other memory.
    const mapped_file* file = nullptr;
};

/// A field of an op whose value each run reads from a slot of one element: a parameter, or a constant that
/// add_fixed_scalars has made.
struct plan_binding {
    /// The index of the op.
    std::uint32_t op = 0;
    /// The index of the field in op_info::fields.
    std::uint32_t field = 0;
    /// The index of the slot.
    std::uint32_t slot = 0;

    friend bool operator==(const plan_binding&, const plan_binding&) = default;
};

/// What a builder has collected.
struct plan_draft {
    std::string name;
    /// any_ref::generation of the refs to its slots.
    std::uint32_t builder = 0;
    /// For a plan of a set: the constants and states of the set, to which refs of its ops may refer.
    std::shared_ptr<const plan_draft> common;
    std::vector<plan_slot> slots;
    /// As many as there are slots; empty for a slot without content.
    std::vector<plan_content> contents;
    std::vector<listed_op> ops;
    /// In the order of the ops.
    std::vector<plan_binding> bindings;
    /// The indices of the ops that were marked as pure, ascending.
    std::vector<std::uint32_t> marked_pure;
    /// The number of slots of each kind.
    std::uint32_t counts[slot_kind_count]{};
    /// The first error of a function that returns no result; zero: none. Not an error_code, because the message of an
    /// error_code is not kept for long.
    errc problem{};
    std::string message;
};

/// A range of an instance's memory, in bytes.
struct byte_range {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// A finished plan, never changed afterwards.
///
/// The memory of an instance: inputs that the run copies, parameters, large inputs, outputs that the run copies, large
/// outputs, scratch. Scratch slots whose lifetimes do not meet share memory.
struct plan_data {
    std::string name;
    content_id id;
    std::vector<plan_slot> slots;
    /// Their refs name slots.
    std::vector<listed_op> ops;
    /// The fields of ops that get their values at each run, in the order of the ops. The fields of an op that a GPU
    /// reads from device memory are listed either all or not at all.
    std::vector<plan_binding> bindings;
    /// The indices of the ops that were marked as pure, ascending.
    std::vector<std::uint32_t> marked_pure;
    /// Indices of slots by kind, each in the order in which the slots were added.
    std::vector<std::uint32_t> inputs;
    std::vector<std::uint32_t> parameters;
    std::vector<std::uint32_t> outputs;
    std::vector<std::uint32_t> constants;
    std::vector<std::uint32_t> states;
    /// The contents of `constants`.
    std::vector<plan_content> constant_contents;
    /// The initial contents of `states`; a state without one begins with zeros.
    std::vector<plan_content> state_contents;
    /// The memory of one instance.
    std::uint64_t instance_bytes = 0;
    /// The inputs with the parameters, and the outputs, that a run copies through pinned memory.
    byte_range staged_inputs;
    byte_range staged_outputs;
    /// The scratch memory without sharing.
    std::uint64_t unshared_scratch_bytes = 0;
    /// It is a graph: its constants and states are buffers that exist already, and there are no other slots.
    bool over_buffers = false;

    bool has_state() const noexcept { return !states.empty(); }

    /// The index of the first op that is not pure; the number of ops: there is none.
    COACCEL_DECL std::size_t first_impure() const noexcept;
    /// Whether a run that was interrupted can be repeated as if it had never begun.
    bool repeatable() const noexcept { return !has_state() && !over_buffers && first_impure() == ops.size(); }
};

} // namespace detail
} // namespace coaccel

#endif
