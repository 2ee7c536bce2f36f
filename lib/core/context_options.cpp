#include "core/option_check.hpp"

#include <coaccel/core/context_options.hpp>

namespace coaccel {

error_code context_options::check() const noexcept
{
    using std::chrono::nanoseconds;
    return detail::check_options({
        {lanes.how <= lane_policy::kind::pooled, "context.lanes.how is none of its values"},
        {lanes.count >= 1 && lanes.count <= lane_policy::max_pooled, "context.lanes.count is to be from 1 to 8"},
        {completion <= completion::sync, "context.completion is none of its values"},
        {spin_budget >= nanoseconds(0), "context.spin_budget is negative"},
        {monitor_interval > nanoseconds(0), "context.monitor_interval is to be above zero"},
        {hang_timeout >= nanoseconds(0), "context.hang_timeout is negative"},
    });
}

} // namespace coaccel
