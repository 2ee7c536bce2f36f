#include "context/lanes/lane_selector.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/assert.hpp>

namespace coaccel::detail {

std::size_t lane_selector::policy_lanes() const noexcept
{
    switch (policy_.how) {
    case lane_policy::kind::per_library: return library_count;
    case lane_policy::kind::single: return 1;
    case lane_policy::kind::pooled:
    case lane_policy::kind::chained: return static_cast<std::size_t>(policy_.count);
    }
    return 1;
}

error_code bad_priority(const exec_options& options) noexcept
{
    return not_enumerated("exec_options", "priority", static_cast<unsigned>(options.priority), "priority");
}

error_code lane_selector::check(const exec_options& options) noexcept
{
    if (options.priority > priority::high)
        return bad_priority(options);
    if (options.lane != exec_options::any_lane && (options.lane < 0 || options.lane >= caller_lanes))
        return op_error(errc::invalid_argument, "exec_options",
                        {"lane is ", options.lane, ", must be below ", caller_lanes});
    return {};
}

std::size_t lane_selector::choose(library lib, const exec_options& options) noexcept
{
    BOOST_ASSERT(!is_chained(options));
    std::size_t lane = 0;
    if (options.lane != exec_options::any_lane)
        lane = policy_lanes() + static_cast<std::size_t>(options.lane);
    else if (policy_.how == lane_policy::kind::per_library)
        lane = static_cast<std::size_t>(lib);
    else
        lane = next_++ % policy_lanes();
    return key_of(lane, options.priority);
}

} // namespace coaccel::detail
