#ifndef COACCEL_DEVICE_PLAN_RESOURCES_HPP
#define COACCEL_DEVICE_PLAN_RESOURCES_HPP

#include <coaccel/plan/detail/plan_data.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace coaccel::detail {

class constant_table;
class loaded_plan;

/// What one run of a plan needs.
struct plan_instance {
    /// Identifies it within its context.
    std::uint64_t id = 0;
    std::uint64_t chain = 0;
    any_ref memory;
};

/// What a plan has in one context.
struct plan_resources {
    /// Those that can be used.
    std::vector<plan_instance> instances;
    /// Of each constant: its part of one of the next buffers.
    std::vector<any_ref> constants;
    /// One for each group of constants.
    std::vector<any_ref> constant_buffers;
    std::vector<any_ref> states;
    /// Memory of the context in place of durable states, which are in one context at a time: one for each state, unset
    /// for the others. Empty if the plan has no durable states, or has them here.
    std::vector<any_ref> stand_ins;
    /// An instance over the stand-ins, which no run may use. It is loaded again over the durable states when the
    /// context is the current one, with code that is loaded and constants that are there.
    std::optional<plan_instance> prepared;

    /// Those that can be used, and the other one.
    bool has_instance() const noexcept { return prepared || !instances.empty(); }
    /// The one to unload next. Preconditions: has_instance().
    const plan_instance& last_instance() const noexcept { return prepared ? *prepared : instances.back(); }
};

/// Empties the resources of this plan, and returns the buffers to release: not the constants that another plan uses,
/// nor the states that it has in common with others.
std::vector<any_ref> take_buffers(plan_resources& from, const loaded_plan& plan, constant_table& constants);

} // namespace coaccel::detail

#endif
