#include "core/option_check.hpp"

#include <coaccel/core/context_options.hpp>

namespace coaccel {

error_code context_options::check() const noexcept
{
    using std::chrono::nanoseconds;
    return detail::check_options({
        {lanes.how <= lane_policy::kind::chained, "context.lanes.how", lanes.how, detail::an_enumerator},
        {lanes.count >= 1 && lanes.count <= lane_policy::max_pooled, "context.lanes.count", lanes.count,
         "it must be from 1 to 8"},
        {completion <= completion::sync, "context.completion", completion, detail::an_enumerator},
        {spin_budget >= nanoseconds(0), "context.spin_budget", spin_budget, detail::not_negative},
        {monitor_interval > nanoseconds(0), "context.monitor_interval", monitor_interval, detail::above_zero},
        {hang_timeout >= nanoseconds(0), "context.hang_timeout", hang_timeout, detail::not_negative},
    });
}

} // namespace coaccel
