#ifndef COACCEL_DEVICE_REFUSED_LOADS_HPP
#define COACCEL_DEVICE_REFUSED_LOADS_HPP

#include <coaccel/plan/detail/plan_data.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace coaccel::detail {

/// The plans that a device does not load for a while, because loading them has ended contexts: otherwise a client that
/// repeats such a load would cost several contexts each time. A plan is known by its content, because a load that was
/// refused leaves no handle. Has no clock.
class refused_loads {
public:
    using time_point = std::chrono::steady_clock::time_point;
    using duration = time_point::duration;

    /// If there are more, the plan whose refusal ends first is forgotten.
    static constexpr std::size_t most = 16;
    /// How long a plan is refused for the first time. As long as poison_count counts runs.
    static constexpr duration first_window = std::chrono::minutes(1);
    static constexpr duration longest_window = std::chrono::hours(1);

    /// Loading the plan has ended contexts. Returns how long it is refused from `now` on: twice as long as before if
    /// that time has passed. If it has not, the plan was on the device before, and the same time begins again.
    duration add(const content_id& plan, time_point now)
    {
        auto found = find(plan);
        if (found == all_.end()) {
            if (all_.size() == most)
                all_.erase(std::ranges::min_element(all_, {}, &entry::end));
            found = all_.insert(all_.end(), {plan, first_window, now});
        } else if (now >= found->end) {
            found->window = std::min(2 * found->window, longest_window);
        }
        found->end = now + found->window;
        return found->window;
    }

    /// How much longer the plan is refused; zero: it may be loaded.
    duration left(const content_id& plan, time_point now) const noexcept
    {
        const auto found = std::ranges::find(all_, plan, &entry::plan);
        return found == all_.end() ? duration::zero() : std::max(found->end - now, duration::zero());
    }

    /// The plan has been loaded, or a person permits it: what happened before does not count any more.
    void forget(const content_id& plan) noexcept
    {
        if (const auto found = find(plan); found != all_.end())
            all_.erase(found);
    }

    /// A person permits all plans.
    void clear() noexcept { all_.clear(); }

private:
    struct entry {
        content_id plan;
        duration window;
        time_point end;
    };

    std::vector<entry>::iterator find(const content_id& plan) noexcept
    {
        return std::ranges::find(all_, plan, &entry::plan);
    }

    /// Plans that are no longer refused stay, so that their next refusal is longer.
    std::vector<entry> all_;
};

} // namespace coaccel::detail

#endif
