#include "core/option_check.hpp"

#include <coaccel/serve/batcher_options.hpp>

#include <algorithm>

namespace coaccel::serve {

error_code batcher_options::check() const noexcept
{
    const auto least_queued = *std::ranges::min_element(max_queued);
    const auto least_preferred = preferred.empty() ? 1 : *std::ranges::min_element(preferred);
    if (auto ec = detail::check_options({
            {max_delay.count() >= 0, "max_delay", max_delay, detail::not_negative},
            {delay <= delay_rule::fixed, "delay", delay, detail::an_enumerator},
            // Written so that NaN is refused.
            {max_padding >= 0 && max_padding <= 1, "max_padding", max_padding, "it must be from 0 to 1"},
            {max_in_flight >= 1 && max_in_flight <= 64, "max_in_flight", max_in_flight, "it must be from 1 to 64"},
            {least_queued >= 1, "max_queued", least_queued, "each must be at least 1"},
            {least_preferred >= 1, "preferred", least_preferred, "each must be at least 1"},
            {order <= completion_order::arrival, "order", order, detail::an_enumerator},
            {run_limit.count() >= 0, "run_limit", run_limit, detail::not_negative},
        }))
        return ec;
    if (auto ec = restart.validate())
        return ec;
    return plan.check();
}

} // namespace coaccel::serve
