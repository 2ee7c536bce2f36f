#ifndef COACCEL_PLAN_PLAN_SET_BUILDER_HPP
#define COACCEL_PLAN_PLAN_SET_BUILDER_HPP

#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace coaccel {

/// Writes down several plans with common constants and states, such as one plan for each batch size of a model, or two
/// plans that work on one cache.
///
///     plan_set_builder set("model");
///     auto cache = set.state<float>(1 << 20, "cache");
///     auto w = set.constant<float>(weights, "w");
///     plan_builder& prefill = set.plan("prefill");
///     prefill.add(...);                                   // ops over cache, w and slots of prefill
///     plan_builder& decode = set.plan("decode");
///     decode.add(...);
///     result<plan_set_description> model = set.finish();
///
/// The refs that state() and constant() return may be used by every plan of the set. A state is common to those plans
/// that use it in an op; so whether two plans have a state in common can be seen from their ops. Equal names alone mean
/// nothing: with states that are found by their names, a misspelled name would silently be a state of its own.
///
/// An error in a slot, a plan or an op is returned by finish().
///
/// Exceptions: std::bad_alloc when there is no memory. A function that adds something then changes nothing.
/// Lifetimes: the plan builders belong to the set, wherever it is moved, and are destroyed with it. A set builder that
/// was moved from can only be destroyed or assigned to.
/// Thread safety: none; one thread at a time.
class COACCEL_DECL plan_set_builder {
public:
    explicit plan_set_builder(std::string name = {}); ///< A set without plans; `name` may be empty.
    plan_set_builder(plan_set_builder&&) noexcept;
    plan_set_builder& operator=(plan_set_builder&&) noexcept;
    ~plan_set_builder();

    /// Memory that keeps its content from run to run. It begins with zeros.
    template <element T>
    ref<T> state(std::uint64_t count, std::string name = {})
    {
        return slots_->state<T>(count, std::move(name));
    }

    /// As plan_builder::state, for memory that outlives the contexts of the device.
    template <element T>
    ref<T> state(std::uint64_t count, durable how, std::string name = {})
    {
        return slots_->state<T>(count, how, std::move(name));
    }

    /// Memory that keeps its content from run to run. It begins with a copy of `initial`.
    template <element T, std::ranges::contiguous_range Range>
        requires std::convertible_to<const Range&, std::span<const T>>
    ref<T> state(const Range& initial, std::string name = {})
    {
        return slots_->state<T>(initial, std::move(name));
    }

    /// As plan_builder::state, for memory that outlives the contexts of the device.
    template <element T, std::ranges::contiguous_range Range>
        requires std::convertible_to<const Range&, std::span<const T>>
    ref<T> state(const Range& initial, durable how, std::string name = {})
    {
        return slots_->state<T>(initial, how, std::move(name));
    }

    /// Memory that is uploaded once, with a copy of `values`. Ops only read it.
    template <element T, std::ranges::contiguous_range Range>
        requires std::convertible_to<const Range&, std::span<const T>>
    ref<T> constant(const Range& values, std::string name = {})
    {
        return slots_->constant<T>(values, std::move(name));
    }

    /// As above, without a copy; see plan_builder::constant.
    template <element T>
    ref<T> constant(std::span<const T> values, std::shared_ptr<const void> owner, std::string name = {})
    {
        return slots_->constant<T>(values, std::move(owner), std::move(name));
    }

    /// Adds a plan, to which slots and ops can be added until the set is destroyed. By its name the plan is found in
    /// the loaded set; in messages and statistics the name of the set precedes it, as in "model.decode".
    ///
    /// Errors of finish(): errc::invalid_argument if the name is empty, or is that of another plan of the set.
    plan_builder& plan(std::string name);

    /// Checks all plans, as plan_builder::finish does, and finds the states that they have in common. The builder stays
    /// as it is: it can be extended and finished again.
    ///
    /// Errors: those of plan_builder::finish, with a message that names the plan; errc::invalid_argument for a set
    /// without plans.
    [[nodiscard]] result<plan_set_description> finish() const;

private:
    struct member {
        std::string name;
        plan_builder builder;
    };

    std::string name_;
    /// Has the slots of the set, and no ops.
    std::shared_ptr<plan_builder> slots_;
    std::vector<std::unique_ptr<member>> plans_;
};

} // namespace coaccel

#endif
