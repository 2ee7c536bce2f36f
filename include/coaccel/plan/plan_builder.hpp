#ifndef COACCEL_PLAN_PLAN_BUILDER_HPP
#define COACCEL_PLAN_PLAN_BUILDER_HPP

#include <coaccel/core/plan_parameter.hpp>
#include <coaccel/core/stored_reply.hpp>
#include <coaccel/plan/plan_description.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>

namespace coaccel {

namespace detail {

struct builder_access;

/// Whether a plan may contain the op. Ops that allocate or copy to and from the host, and those of the plans
/// themselves, belong to the device.
template <class Op>
inline constexpr bool is_plan_op = Op::lib != library::plan;

template <class Op>
    requires requires { Op::role; }
inline constexpr bool is_plan_op<Op> = Op::lib != library::plan && Op::role == op_role::compute;

} // namespace detail

/// An op that the caller declares to be pure; made by `pure`.
template <class Op>
struct marked_pure {
    Op op; ///< The op.
};

/// Declares that an op changes only its operands, and that what it writes depends only on its fields and operands. For
/// jit::launch and plugin::call, of which the library cannot know it; a plan is repeatable only if all its ops are
/// pure: `b.add(pure(jit::launch(k, shape, in(x), out(y))))`.
template <class Op>
marked_pure<Op> pure(const Op& o)
{
    return {o};
}

/// Writes a request down as data: slots, which are the memory that it uses, and ops over them.
///
///     plan_builder b("classify");
///     auto x = b.input<float>(1024);
///     auto w = b.constant<float>(weights);
///     auto y = b.output<float>(10);
///     b.add(blas::gemv<float>{.a = w, .x = x, .y = y, .m = 10, .n = 1024});
///     result<plan_description> plan = b.finish();
///
/// The functions that add slots return refs, which only ops of this builder may use. The last argument of each is a
/// name for messages and texts; the default is the kind with a number, such as "input1".
///
/// An error in a slot or an op is returned by finish().
///
/// Exceptions: std::bad_alloc when there is no memory. A function that adds something then changes nothing.
/// Lifetimes: a builder that was moved from can only be destroyed or assigned to.
/// Thread safety: none; one thread at a time.
class COACCEL_DECL plan_builder {
public:
    static constexpr std::size_t max_slots = 65535; ///< The maximum number of slots.
    static constexpr std::size_t max_ops = 65535;   ///< The maximum number of ops.

    explicit plan_builder(std::string name = {}); ///< A plan without slots and ops; `name` may be empty.
    plan_builder(plan_builder&&) noexcept;
    plan_builder& operator=(plan_builder&&) noexcept;
    ~plan_builder();

    /// Memory that each run copies from the caller. Ops only read it.
    template <element T>
    ref<T> input(std::uint64_t count, std::string name = {})
    {
        return ref<T>::from_raw(add_slot(slot_kind::input, dtype_v<T>, count, std::move(name)));
    }

    /// As above, with dimensions, which plan_description::inputs returns. The rows of all shapes that have some must be
    /// the same number.
    template <element T>
    ref<T> input(plan_shape shape, std::string name = {})
    {
        return ref<T>::from_raw(add_shaped(slot_kind::input, dtype_v<T>, std::move(shape), std::move(name)));
    }

    /// Memory that each run copies to the caller. The ops must write all of it.
    template <element T>
    ref<T> output(std::uint64_t count, std::string name = {})
    {
        return ref<T>::from_raw(add_slot(slot_kind::output, dtype_v<T>, count, std::move(name)));
    }

    /// As above, with dimensions, as for an input.
    template <element T>
    ref<T> output(plan_shape shape, std::string name = {})
    {
        return ref<T>::from_raw(add_shaped(slot_kind::output, dtype_v<T>, std::move(shape), std::move(name)));
    }

    /// Memory for results that only other ops of the same run read.
    template <element T>
    ref<T> scratch(std::uint64_t count, std::string name = {})
    {
        return ref<T>::from_raw(add_slot(slot_kind::scratch, dtype_v<T>, count, std::move(name)));
    }

    /// A number that each run brings along. It is the value of fields of ops, such as the factor of a product, or of
    /// arguments of kernels.
    template <element T>
    plan_parameter<T> parameter(std::string name = {})
    {
        return plan_parameter<T>::from_raw(add_slot(slot_kind::parameter, dtype_v<T>, 1, std::move(name)));
    }

    /// Memory that keeps its content from run to run. It begins with zeros.
    template <element T>
    ref<T> state(std::uint64_t count, std::string name = {})
    {
        return ref<T>::from_raw(add_slot(slot_kind::state, dtype_v<T>, count, std::move(name)));
    }

    /// As above, and the content outlives the contexts of the device: after the loss of a context, runs find what
    /// earlier runs have left. For devices with isolation::worker and a backend that can export memory.
    template <element T>
    ref<T> state(std::uint64_t count, durable how, std::string name = {})
    {
        return ref<T>::from_raw(made_durable(add_slot(slot_kind::state, dtype_v<T>, count, std::move(name)), how));
    }

    /// Memory that keeps its content from run to run. It begins with a copy of `initial`.
    template <element T, std::ranges::contiguous_range Range>
        requires std::convertible_to<const Range&, std::span<const T>>
    ref<T> state(const Range& initial, std::string name = {})
    {
        return copied<T>(slot_kind::state, initial, std::move(name));
    }

    /// As above, and the content outlives the contexts of the device.
    template <element T, std::ranges::contiguous_range Range>
        requires std::convertible_to<const Range&, std::span<const T>>
    ref<T> state(const Range& initial, durable how, std::string name = {})
    {
        return ref<T>::from_raw(made_durable(copied<T>(slot_kind::state, initial, std::move(name)).raw(), how));
    }

    /// Memory that is uploaded once, with a copy of `values`. Ops only read it.
    template <element T, std::ranges::contiguous_range Range>
        requires std::convertible_to<const Range&, std::span<const T>>
    ref<T> constant(const Range& values, std::string name = {})
    {
        return copied<T>(slot_kind::constant, values, std::move(name));
    }

    /// As above, without a copy: the plan keeps `owner`, and the values must not change while it does. If `owner` is
    /// empty, they must exist for as long as the plan.
    template <element T>
    ref<T> constant(std::span<const T> values, std::shared_ptr<const void> owner, std::string name = {})
    {
        return ref<T>::from_raw(add_content(slot_kind::constant, dtype_v<T>, values.size(),
                                            {std::move(owner), reinterpret_cast<const std::byte*>(values.data())},
                                            std::move(name)));
    }

    /// Adds an op at the end. Every op reads what earlier ops have written.
    ///
    /// Parameters can be the values of its fields: `b.add(op, bind(&blas::gemv<float>::alpha, alpha))`. This applies to
    /// alpha and beta of BLAS ops; finish() refuses other fields. A field `beta` with a parameter counts as not zero.
    template <op Op, class... Ts>
    plan_builder& add(const Op& o, const field_binding<Op, Ts>&... fields)
    {
        [[maybe_unused]] const auto offset = [&](const auto& member) {
            return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&member) -
                                            reinterpret_cast<const std::byte*>(&o));
        };
        const std::array<detail::bound_field, sizeof...(Ts)> bound{
            detail::bound_field{offset(o.*fields.field), fields.from.raw()}...};
        return add_with(o, bound);
    }

    /// As above, for a launch with parameters among its arguments: `b.add(jit::launch(k, shape, in(x), out(y),
    /// alpha))`.
    template <op Op, std::size_t N>
    plan_builder& add(const op_with_parameters<Op, N>& o)
    {
        return add_with(o.op, o.fields);
    }

    /// As above, for an op that is marked as pure.
    template <class Op, class... Ts>
    plan_builder& add(const marked_pure<Op>& o, const field_binding<Op, Ts>&... fields)
    {
        const purity_mark mark(draft_);
        return add(o.op, fields...);
    }

    /// Checks the plan and arranges its memory, without a device. The builder stays as it is: it can be extended and
    /// finished again.
    ///
    /// An op counts as using all elements of the refs in its operands. Whether a plug-in has the function of a
    /// plugin::call is checked when a device loads the plan.
    ///
    /// Errors: those of the ops' own checks, errc::invalid_argument, errc::size_overflow, errc::out_of_bounds,
    /// errc::wrong_dtype and errc::overlap, with a message that names the plan, the op, the field and the slot.
    [[nodiscard]] result<plan_description> finish() const;

private:
    friend class plan_set_builder;
    friend struct detail::builder_access;

    /// Marks the next op as pure, if it is added while this exists.
    class purity_mark {
    public:
        explicit purity_mark(detail::plan_draft& d) : draft_(d)
        {
            draft_.marked_pure.push_back(static_cast<std::uint32_t>(draft_.ops.size()));
        }
        purity_mark(const purity_mark&) = delete;
        purity_mark& operator=(const purity_mark&) = delete;
        ~purity_mark()
        {
            if (draft_.marked_pure.back() == draft_.ops.size())
                draft_.marked_pure.pop_back();
        }

    private:
        detail::plan_draft& draft_;
    };

    template <op Op>
    plan_builder& add_with(const Op& o, std::span<const detail::bound_field> bound)
    {
        static_assert(detail::stands_alone<Op>, "the caller's memory is not kept for the ops of a plan");
        static_assert(!op_with_storable_reply<Op>, "a plan returns no replies; use store_reply");
        static_assert(detail::is_plan_op<Op>, "a plan has slots instead of allocations and copies");
        static_assert(alignof(Op) <= alignof(detail::op_unit));
        std::shared_ptr<const void> kept;
        if constexpr (requires { o.keep(); })
            kept = o.keep();
        add_op(info_of<Op>(), &o, std::move(kept), bound);
        return *this;
    }

    template <element T>
    ref<T> copied(slot_kind kind, std::span<const T> values, std::string name)
    {
        return ref<T>::from_raw(add_copy(kind, dtype_v<T>, std::as_bytes(values), std::move(name)));
    }

    any_ref add_shaped(slot_kind kind, dtype type, plan_shape shape, std::string name);
    any_ref add_slot(slot_kind kind, dtype type, std::uint64_t count, std::string name);
    any_ref add_copy(slot_kind kind, dtype type, std::span<const std::byte> bytes, std::string name);
    any_ref add_content(slot_kind kind, dtype type, std::uint64_t count, std::shared_ptr<const std::byte> data,
                        std::string name);
    any_ref made_durable(const any_ref& state, durable how);
    void add_op(const op_info& info, const void* op, std::shared_ptr<const void> kept,
                std::span<const detail::bound_field> bound);

    detail::plan_draft draft_;
};

} // namespace coaccel

#endif
