#ifndef COACCEL_DEVICE_STANDBY_PLANS_HPP
#define COACCEL_DEVICE_STANDBY_PLANS_HPP

#include "device/plan_list.hpp"

#include <memory>
#include <vector>

namespace coaccel::detail {

/// The plans of a device in the context of its standby: one instance of each, so that they can run as soon as the
/// standby takes over. Follows the plan_list of the device: loads what is there, and unloads what has left. One request
/// at a time is on its way to the context. Starts nothing itself.
class COACCEL_DECL standby_plans {
public:
    /// A plan in this context.
    struct plan_copy {
        std::shared_ptr<loaded_plan> plan;
        plan_resources resources;
        /// It could not be loaded. It is not tried again until another plan has left.
        bool failed = false;
    };

    /// What has become of the request that ended.
    struct news {
        /// This plan could not be loaded, because of `error`.
        loaded_plan* failed = nullptr;
        error_code error;
        /// The context has died while this plan was being loaded.
        loaded_plan* lost = nullptr;
        /// Why the plan that ended could not be unloaded; it counts as unloaded.
        error_code unload_error;
        /// As in plan_list::news.
        loaded_plan* unshared = nullptr;
        error_code unshared_error;
        /// Buffers to release.
        std::vector<any_ref> unused;
    };

    /// Everything, for the plan_list of the device.
    struct contents {
        std::vector<std::unique_ptr<plan_copy>> copies;
        constant_table constants;
        std::unique_ptr<plan_loading> loading;
        plan_copy* unloading = nullptr;
        load_part* pending = nullptr;
    };

    /// The request to submit next; null: there is nothing to do, or one is on its way. `can_share` as in plan_list.
    load_part* next(plan_list& plans, sharing can_share = sharing::no);
    bool has_next(const plan_list& plans) const noexcept;
    bool pending() const noexcept { return has_.pending != nullptr; }
    /// Whether all plans are there, except those that could not be loaded.
    bool complete(const plan_list& plans) const noexcept { return !pending() && !has_next(plans); }

    /// The request that `next` returned has ended; consumes it.
    news finished(load_part& part, const error_code& ec);

    /// The plans that are loaded. After a take-over they can run, those with durable states after a second, short load.
    std::size_t loaded() const noexcept;

    /// The context is gone.
    void forget_context() noexcept;

    /// The device takes over the context.
    contents take() noexcept { return std::exchange(has_, {}); }

private:
    bool is_here(const loaded_plan& p) const noexcept;
    loaded_plan* next_to_load(const plan_list& plans) const noexcept;
    plan_copy* next_to_unload() const noexcept;
    void remove(const plan_copy& c) noexcept;
    void leave_common_states(const loaded_plan& plan, std::vector<any_ref>& unused);

    contents has_;
};

} // namespace coaccel::detail

#endif
