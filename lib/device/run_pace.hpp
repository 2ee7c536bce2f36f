#ifndef COACCEL_DEVICE_RUN_PACE_HPP
#define COACCEL_DEVICE_RUN_PACE_HPP

#include <coaccel/device/plan_options.hpp>

#include <algorithm>
#include <chrono>

namespace coaccel::detail {

/// How long the runs of a plan take, and from when on one of them is overdue. Has no clock.
class run_pace {
public:
    using duration = std::chrono::steady_clock::duration;

    explicit run_pace(const overdue_rule& rule) noexcept : rule_(rule) {}

    bool enabled() const noexcept { return rule_.enabled(); }

    /// A run has ended without an error.
    void ended(duration took) noexcept
    {
        // A mean in which the last runs count most.
        expected_ = known_ ? expected_ + (took - expected_) / 8 : took;
        known_ = true;
    }

    /// A run that was overdue has ended without an error after all.
    void false_alarm() noexcept { patience_ = std::min(2 * patience_, 1024.0); }

    /// After this time a run is overdue; duration::max() before the first one has ended.
    duration limit() const noexcept
    {
        if (!enabled() || !known_)
            return duration::max();
        const double usual = std::max(static_cast<double>(expected_.count()) * rule_.factor,
                                      static_cast<double>(duration(rule_.at_least).count()));
        const double limit = usual * patience_;
        // A day, because adding a longer time to a time point might overflow.
        constexpr double most = static_cast<double>(duration(std::chrono::hours(24)).count());
        // Written so that 0 * infinity, which is NaN, also yields the most.
        return duration(static_cast<duration::rep>(limit < most ? limit : most));
    }

private:
    overdue_rule rule_;
    duration expected_{};
    bool known_ = false;
    double patience_ = 1;
};

} // namespace coaccel::detail

#endif
