#include <coaccel/core/context_options.hpp>

namespace coaccel {

error_code context_options::check() const noexcept
{
    using std::chrono::nanoseconds;
    const bool lanes_fit =
        lanes.how <= lane_policy::kind::pooled && lanes.count >= 1 && lanes.count <= lane_policy::max_pooled;
    const bool times_fit =
        spin_budget >= nanoseconds(0) && monitor_interval > nanoseconds(0) && hang_timeout >= nanoseconds(0);
    return lanes_fit && times_fit && completion <= completion::sync ? error_code{}
                                                                    : make_error_code(errc::invalid_option);
}

} // namespace coaccel
