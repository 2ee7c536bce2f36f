#ifndef COACCEL_DEVICE_COMMON_STATES_HPP
#define COACCEL_DEVICE_COMMON_STATES_HPP

#include "device/durable_state.hpp"
#include "device/instance_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// In which context of a device something is.
enum class context_place : std::uint8_t { current, standby };

/// The states that plans of a set have in common, in the contexts of a device, and the order of the runs of these
/// plans.
///
/// The first of the plans that is loaded into a context allocates and fills a state, the others find it there. So a
/// state begins with its initial content once, before any run that uses it.
class common_states {
public:
    /// `users`: for each state, how many plans use it.
    explicit common_states(std::vector<std::uint32_t> users)
        : users_(std::move(users)), refs_{std::vector<any_ref>(users_.size()), std::vector<any_ref>(users_.size())},
          durable_(users_.size())
    {}

    /// Its buffer; a ref without a device if no plan has made it yet.
    const any_ref& find(context_place where, std::size_t i) const noexcept { return refs(where)[i]; }
    void set(context_place where, std::size_t i, const any_ref& made) noexcept { refs(where)[i] = made; }

    /// No plan uses the state on the standby any more. Returns its buffer.
    any_ref take_from_standby(std::size_t i) noexcept { return std::exchange(refs(context_place::standby)[i], {}); }

    /// A plan that uses the state joins the device, apart from those that were counted at the beginning.
    void join(std::size_t i) noexcept { ++users_[i]; }

    /// A plan that uses the state leaves the device. Returns the buffer in the current context if it was the last one
    /// and the buffer exists, otherwise a ref without a device. Plans count as long as they are on the device, loaded
    /// in the current context or not: a run of a plan that is loaded later finds the content that earlier runs have
    /// left.
    any_ref leave(std::size_t i) noexcept
    {
        if (--users_[i] > 0)
            return {};
        durable_[i].reset();
        return std::exchange(refs(context_place::current)[i], {});
    }

    /// The state if it is durable, made when it is first asked for. Null if no plan on the device uses it.
    std::shared_ptr<durable_state> durable(std::size_t i)
    {
        if (!durable_[i] && users_[i] > 0)
            durable_[i] = std::make_shared<durable_state>();
        return durable_[i];
    }

    /// The context is gone.
    void forget(context_place where) noexcept { refs(where).assign(users_.size(), {}); }

    /// The context of the standby is the current one from now on. May be called again.
    void adopt_standby() noexcept
    {
        for (std::size_t i = 0; i < users_.size(); ++i)
            if (const any_ref made = take_from_standby(i); made.device != 0)
                refs(context_place::current)[i] = made;
    }

    /// Runs of these plans that wait for an instance.
    ordered_requests waiting;
    /// Determines the chain of all instances of these plans; zero until the first of them is on the device.
    std::uint64_t number = 0;
    /// Whether one of these plans has random generators.
    bool draws = false;

private:
    std::vector<any_ref>& refs(context_place where) noexcept { return refs_[static_cast<std::size_t>(where)]; }
    const std::vector<any_ref>& refs(context_place where) const noexcept
    {
        return refs_[static_cast<std::size_t>(where)];
    }

    std::vector<std::uint32_t> users_;
    std::vector<any_ref> refs_[2];
    std::vector<std::shared_ptr<durable_state>> durable_;
};

} // namespace coaccel::detail

#endif
