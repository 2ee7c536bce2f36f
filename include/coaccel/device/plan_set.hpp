#ifndef COACCEL_DEVICE_PLAN_SET_HPP
#define COACCEL_DEVICE_PLAN_SET_HPP

#include <coaccel/device/plan.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace coaccel {

/// Plans with common constants and states that are loaded on a device: `model["decode"].async_run(...)`.
///
/// A value type: copies refer to the same loaded plans. Each plan is unloaded when the last set and the last `plan`
/// that refer to it are destroyed and its runs have ended. A common state exists until all plans that use it are
/// unloaded.
///
/// Order: the runs of all plans of the set that use a common state happen in the order in which they were started, one
/// after another. The other plans are like plans that were loaded one by one.
///
/// After the context of the device has died or was replaced, the device loads all plans again by itself. The common
/// states begin with their initial content, once for all plans.
///
/// Executor, cancellation, exceptions and thread safety: as for `device`.
class plan_set {
public:
    using executor_type = asio::any_io_executor;

    /// Has no plans.
    plan_set() noexcept = default;

    std::size_t size() const noexcept { return plans_.size(); } ///< The number of plans.

    /// The plan with this index, in the order in which the plans were added. If there is none, an empty plan, whose
    /// operations complete with errc::invalid_argument.
    plan operator[](std::size_t index) const noexcept { return index < plans_.size() ? plans_[index] : plan(); }

    /// The plan with this name, as given to plan_set_builder::plan. If there is none, an empty plan.
    plan operator[](std::string_view name) const noexcept
    {
        for (std::size_t i = 0; i < plans_.size(); ++i)
            if (detail::plan_set_access::data(description_)->plans[i].name == name)
                return plans_[i];
        return {};
    }

    /// Unloads all plans. Runs that have an instance end first; runs that wait for one, and later runs, complete with
    /// errc::invalid_argument. To unload one plan, use its own async_unload.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all memory of the plans has been released.
    /// Cancellation: completes at once; the plans are unloaded all the same.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_unload(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::unload_request>{core()},
                                                             token, loaded());
    }

    executor_type get_executor() const noexcept { return detail::executor_of(core()); }
    const device& get_device() const noexcept { return device_; } ///< The device on which it is loaded.
    /// As given to async_load; empty for an empty `plan_set`.
    const plan_set_description& description() const noexcept { return description_; }
    explicit operator bool() const noexcept { return !plans_.empty(); }
    friend bool operator==(const plan_set& a, const plan_set& b) noexcept { return a.plans_ == b.plans_; }

private:
    template <class PlanSet, class Device>
    friend class detail::load_set_request;

    plan_set(device gpu, plan_set_description described, std::vector<std::shared_ptr<detail::plan_handle>> handles)
        : device_(std::move(gpu)), description_(std::move(described))
    {
        plans_.reserve(handles.size());
        for (auto& h : handles)
            plans_.push_back(plan(device_, std::move(h)));
    }

    detail::core_ptr core() const noexcept { return plans_.empty() ? nullptr : plans_.front().core(); }

    detail::loaded_plans loaded() const
    {
        detail::loaded_plans all;
        all.reserve(plans_.size());
        for (const plan& p : plans_)
            all.push_back(p.loaded());
        return all;
    }

    device device_;
    plan_set_description description_;
    std::vector<plan> plans_;
};

template <class Token>
auto device::async_load(plan_set_description described, plan_options how, Token&& token) const
{
    static_assert(asio::completion_token_for<Token, void(error_code, plan_set)>);
    return asio::async_initiate<Token, void(error_code, plan_set)>(
        detail::initiate_request<detail::load_set_request<plan_set, device>>{core()}, token, *this,
        std::move(described), how);
}

template <class Token>
    requires(!std::convertible_to<Token, plan_options>)
auto device::async_load(plan_set_description described, Token&& token) const
{
    return async_load(std::move(described), plan_options{}, static_cast<Token&&>(token));
}

} // namespace coaccel

#endif
