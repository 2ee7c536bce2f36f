#ifndef COACCEL_DEVICE_DETAIL_PLAN_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_PLAN_REQUESTS_HPP

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/core/op_list.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/device/plan_options.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel {

/// Host memory that a run of a plan reads or writes; made by `from` and `to`.
struct run_range {
    std::byte* data = nullptr;               ///< The first element.
    std::uint64_t count = 0;                 ///< In elements.
    dtype type = dtype::u8;                  ///< The element type.
    slot_kind direction = slot_kind::output; ///< `input` or `output`.

    std::uint64_t bytes() const noexcept { return count * size_of(type); } ///< The size in bytes.
};

/// The same of a temporary container, which lives until the end of its full expression.
struct temporary_run_range : run_range {};

/// The value of a parameter for a run of a plan; made by `value`.
struct run_value {
    static constexpr std::size_t most_bytes = 16; ///< The size of the largest element type.

    alignas(most_bytes) std::byte data[most_bytes] = {}; ///< The number.
    dtype type = dtype::u8;                              ///< Its type.
};

namespace detail {

class loaded_plan;

/// Shared by all copies of a `plan`. When the last copy is destroyed, the plan is unloaded.
class COACCEL_DECL plan_handle {
public:
    plan_handle(core_ptr c, std::shared_ptr<loaded_plan> p) noexcept : core(std::move(c)), plan(std::move(p)) {}
    plan_handle(const plan_handle&) = delete;
    plan_handle& operator=(const plan_handle&) = delete;
    ~plan_handle();

    const plan_description& description() const noexcept;
    bool quarantined() const noexcept;
    bool suspect() const noexcept;

    const core_ptr core;
    const std::shared_ptr<loaded_plan> plan;
};

/// Loads a plan, or all plans of a set.
class COACCEL_DECL load_call : public request {
public:
    load_call(plan_description what, plan_options how);
    load_call(plan_set_description what, plan_options how);
    /// Records a graph.
    explicit load_call(op_list ops);

    /// A plan that belongs to no set is here the only one of a set.
    plan_set_description set;
    plan_options how;
    /// The ops of a graph, if it is to be recorded.
    std::optional<op_list> recorded;
    /// Set by the device when the call arrives: all plans of the set.
    std::vector<std::shared_ptr<loaded_plan>> made;
    /// Why one of the plans could not be loaded. The call ends when all of them have left the device.
    error_code failure;

    /// Whether all plans can run.
    bool is_loaded() const noexcept;
    /// The plans no longer belong to a call that is about to end.
    void detach_plans() noexcept;

protected:
    ~load_call();

    std::vector<std::shared_ptr<plan_handle>> take_handles(const core_ptr& core);
};

template <class Plan, class Device>
class load_request : public load_call {
public:
    load_request(const core_ptr& core, Device gpu, plan_description what, plan_options how)
        : load_call(std::move(what), std::move(how)), core_(core), device_(std::move(gpu))
    {}

    load_request(const core_ptr& core, Device gpu, op_list ops)
        : load_call(std::move(ops)), core_(core), device_(std::move(gpu))
    {}

    auto take()
    {
        return std::tuple(ec, ec ? Plan() : Plan(std::move(device_), std::move(take_handles(core_).front())));
    }

protected:
    ~load_request() = default;

private:
    core_ptr core_;
    Device device_;
};

template <class PlanSet, class Device>
class load_set_request : public load_call {
public:
    load_set_request(const core_ptr& core, Device gpu, plan_set_description what, plan_options how)
        : load_call(std::move(what), std::move(how)), core_(core), device_(std::move(gpu))
    {}

    auto take()
    {
        return std::tuple(ec, ec ? PlanSet() : PlanSet(std::move(device_), std::move(set), take_handles(core_)));
    }

protected:
    ~load_set_request() = default;

private:
    core_ptr core_;
    Device device_;
};

using loaded_plans = std::vector<std::shared_ptr<loaded_plan>>;

/// Unloads one or several plans.
class COACCEL_DECL unload_call : public request {
public:
    explicit unload_call(loaded_plans p) noexcept;

    const loaded_plans plans;
    /// How many of them have not left the device yet.
    std::size_t left = 0;

    /// The plans no longer belong to a call that is about to end.
    void detach_plans() noexcept;

protected:
    ~unload_call();
};

class unload_request : public unload_call {
public:
    unload_request(const core_ptr&, loaded_plans p) noexcept : unload_call(std::move(p)) {}

    auto take() { return std::tuple(ec); }

protected:
    ~unload_request() = default;
};

/// Ends the quarantine of a plan.
class COACCEL_DECL revive_plan_call : public request {
public:
    explicit revive_plan_call(std::shared_ptr<loaded_plan> p) noexcept;

    const std::shared_ptr<loaded_plan> plan;

protected:
    ~revive_plan_call();
};

class revive_plan_request : public revive_plan_call {
public:
    revive_plan_request(const core_ptr&, std::shared_ptr<loaded_plan> p) noexcept : revive_plan_call(std::move(p)) {}

    auto take() { return std::tuple(ec); }

protected:
    ~revive_plan_request() = default;
};

/// A copy of a large argument before or after the run.
struct large_copy {
    write_op<std::uint8_t> write;
    read_op<std::uint8_t> read;
    void* address = nullptr;
};

/// The memory of a run with its arguments: `N` ranges and `M` values.
template <std::size_t N, std::size_t M>
struct run_storage {
    std::array<run_range, N> ranges;
    std::array<run_value, M> values;
    std::array<run_argument, N + M> staged;
    std::array<large_copy, N> large;
    std::array<bound_op, N + 1> bound;
};

/// A run of a plan.
class COACCEL_DECL run_call : public request {
public:
    /// Builds the ops for this instance. Called by the device before it starts the request.
    void use(std::uint64_t instance, std::uint64_t chain, const any_ref& memory) noexcept;

    loaded_plan& plan() const noexcept { return *plan_; }
    /// Why the arguments do not fit the plan.
    const error_code& refused() const noexcept { return refused_; }
    /// It is a part of a run that has ended a context, so it runs alone from the start, and if it ends a context too,
    /// the plan is not blamed twice.
    bool part_of_suspect = false;
    /// How long the ops took, without copies of large arguments. Zero: this run was not measured.
    std::chrono::nanoseconds measured() const noexcept { return std::chrono::nanoseconds(ran_.nanoseconds); }

protected:
    run_call(std::shared_ptr<loaded_plan> plan, const exec_options& how) noexcept;
    ~run_call();

    /// The memory for everything that depends on the number of arguments.
    template <std::size_t N, std::size_t M>
    void attach(run_storage<N, M>& s) noexcept
    {
        attach(s.ranges, s.values, s.staged, s.large, s.bound);
    }

    void attach(std::span<const run_range> ranges, std::span<run_value> values, std::span<run_argument> staged,
                std::span<large_copy> large, std::span<bound_op> bound) noexcept;

private:
    std::shared_ptr<loaded_plan> plan_;
    error_code refused_;
    std::span<const run_range> ranges_;
    std::span<run_value> values_;
    std::span<run_argument> staged_;
    std::span<large_copy> large_;
    std::span<bound_op> bound_;
    plan_run_op run_;
    plan_ran ran_;
    void* address_ = nullptr;
};

template <std::size_t N, std::size_t M>
class run_request : public run_call {
public:
    run_request(const core_ptr&, std::shared_ptr<loaded_plan> plan, const std::array<run_range, N>& ranges,
                const std::array<run_value, M>& values, const exec_options& how)
        : run_call(std::move(plan), how)
    {
        storage_.ranges = ranges;
        storage_.values = values;
        attach(storage_);
    }

    auto take() { return std::tuple(ec); }

protected:
    ~run_request() = default;

private:
    run_storage<N, M> storage_;
};

/// The arguments of a run whose number is known at run time only, with the memory that the run needs. Must exist until
/// the run has ended.
struct listed_run {
    std::vector<run_range> ranges;
    std::vector<run_argument> staged;
    std::vector<large_copy> large;
    std::vector<bound_op> bound;

    /// Makes room for the arguments in `ranges`.
    void fit()
    {
        staged.resize(ranges.size());
        large.resize(ranges.size());
        bound.resize(ranges.size() + 1);
    }
};

class listed_run_request : public run_call {
public:
    listed_run_request(const core_ptr&, std::shared_ptr<loaded_plan> plan, listed_run* arguments,
                       const exec_options& how, bool part)
        : run_call(std::move(plan), how)
    {
        part_of_suspect = part;
        attach(arguments->ranges, {}, arguments->staged, arguments->large, arguments->bound);
    }

    auto take() { return std::tuple(ec); }

protected:
    ~listed_run_request() = default;
};

} // namespace detail
} // namespace coaccel

#endif
