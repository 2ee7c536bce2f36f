#ifndef COACCEL_DEVICE_PLAN_LIST_HPP
#define COACCEL_DEVICE_PLAN_LIST_HPP

#include "device/plan_loading.hpp"

#include <coaccel/device/detail/plan_requests.hpp>

#include <memory>
#include <vector>

namespace coaccel::detail {

class standby_plans;

/// The plans of a device: which of them is loaded, extended or unloaded next. One request at a time is on its way to
/// the context. Starts nothing itself.
class COACCEL_DECL plan_list {
public:
    /// What has become of the request that ended, for the device to act on.
    struct news {
        /// An instance of this plan can be used.
        loaded_plan* extended = nullptr;
        /// The plan has left; its runs and calls end with `error`.
        std::shared_ptr<loaded_plan> left;
        /// The plan gets no more instances in this context, because of `error`.
        loaded_plan* limited = nullptr;
        /// The plan cannot be loaded in this context; the runs that wait for it end with `error`.
        loaded_plan* broken = nullptr;
        error_code error;
        /// Why the driver could not unload the instance that ended; it counts as unloaded.
        error_code unload_error;
        /// The context has a constant of this plan for itself, because of `unshared_error`.
        loaded_plan* unshared = nullptr;
        error_code unshared_error;
        /// A durable state of this plan begins again with its initial content, because of `remade_error`.
        loaded_plan* remade = nullptr;
        error_code remade_error;
        /// The context has died while this plan was being loaded.
        loaded_plan* lost = nullptr;
        /// Buffers to release.
        std::vector<any_ref> unused;
    };

    void add(std::shared_ptr<loaded_plan> p)
    {
        p->number = ++plans_added_;
        if (p->common) {
            // Never changed afterwards: there may be instances.
            if (p->common->number == 0)
                p->common->number = p->number;
            p->common->draws |= p->draws;
        }
        all_.push_back(std::move(p));
    }
    bool empty() const noexcept { return all_.empty(); }

    /// Whether a call waits for a plan to be loaded or unloaded.
    bool has_calls() const noexcept;

    /// The request to submit next; null: there is nothing to do, or one is on its way. `can_share`: whether the context
    /// can share constants with others.
    load_part* next(sharing can_share = sharing::no);
    bool has_next() const noexcept;
    bool pending() const noexcept { return pending_ != nullptr; }
    /// Whether the next request, or the one on its way, loads a suspect plan.
    bool loads_suspect(load_suspicion::time_point now) const noexcept
    {
        return loading_ && loading_->loads_instance() && loading_->plan().loads.suspect(now);
    }

    /// Whether a plan is unloaded next, or as soon as another one has one more instance.
    bool unloads_soon() const noexcept;
    /// Whether the next request only makes one more instance of a plan that has one, and no unload waits for it.
    bool next_is_extension() const noexcept;

    /// The request that `next` returned has ended; consumes it.
    news finished(load_part& part, const error_code& ec);

    /// The context is gone, and with it all instances and buffers. Returns plans that were to be unloaded, and all
    /// graphs.
    std::vector<std::shared_ptr<loaded_plan>> forget_context() noexcept;

    /// The context of the standby is the current one from now on; takes over what was loaded there, and what is still
    /// on its way. Returns the plans that can run. Preconditions: the last context was forgotten, and no request is on
    /// its way to it.
    std::vector<loaded_plan*> adopt(standby_plans& standby);

    /// The plan leaves the list. Preconditions: there is no context.
    std::shared_ptr<loaded_plan> take(loaded_plan& p) noexcept;

    /// A number for an instance, which no other instance of the device has.
    std::uint64_t next_instance() noexcept { return ++instances_made_; }
    /// The chain for one more instance of a plan that has `instances`.
    static std::uint64_t chain_of(const loaded_plan& p, std::size_t instances) noexcept;

    /// Removes all plans. The context is gone or about to be destroyed.
    std::vector<std::shared_ptr<loaded_plan>> take_all() noexcept;

    const std::vector<std::shared_ptr<loaded_plan>>& all() const noexcept { return all_; }

    /// The hardware has failed, so that what the shared constants contain is not reliable: the next context fills them
    /// again.
    void distrust_shared() noexcept;

    /// The memory of the durable states of all plans.
    std::uint64_t durable_bytes() const;

    /// The constants of all contexts of the device.
    shared_constants& shared() noexcept { return shared_; }
    const shared_constants& shared() const noexcept { return shared_; }

private:
    /// Runs on different chains can overlap.
    static constexpr std::uint64_t chains = 4;

    std::unique_ptr<load_part> make_next(sharing can_share);
    loaded_plan* next_to_extend() const noexcept;
    std::unique_ptr<load_part> unload_one(loaded_plan& p);
    std::vector<std::shared_ptr<loaded_plan>>::iterator find(const loaded_plan& p) noexcept;
    std::shared_ptr<loaded_plan> remove(loaded_plan& p, std::vector<any_ref>& unused);

    std::vector<std::shared_ptr<loaded_plan>> all_;
    constant_table constants_;
    shared_constants shared_;
    std::unique_ptr<plan_loading> loading_;
    /// The plan of which an instance is being unloaded.
    loaded_plan* unloading_ = nullptr;
    load_part* pending_ = nullptr;
    std::uint64_t instances_made_ = 0;
    std::uint64_t plans_added_ = 0;
};

} // namespace coaccel::detail

#endif
