#include "core/option_check.hpp"

#include <coaccel/actor/restart_policy.hpp>

#include <cmath>

namespace coaccel {

directive restart_always(const error_code&) noexcept
{
    return directive::restart;
}

error_code restart_policy::validate() const noexcept
{
    // Comparisons are written so that a NaN fails them.
    return detail::check_options({
        {decider != nullptr, "restart_policy::decider is null"},
        {strategy == coaccel::strategy::one_for_one || strategy == coaccel::strategy::one_for_all ||
             strategy == coaccel::strategy::rest_for_one,
         "restart_policy::strategy is none of its values"},
        {max_restarts >= 0, "restart_policy::max_restarts is negative"},
        {window > duration::zero(), "restart_policy::window is to be above zero"},
        {initial_backoff >= duration::zero(), "restart_policy::initial_backoff is negative"},
        {initial_backoff <= max_backoff, "restart_policy::initial_backoff is above max_backoff"},
        {std::isfinite(multiplier) && multiplier >= 1.0, "restart_policy::multiplier is to be at least 1"},
        {jitter >= 0.0 && jitter <= 1.0, "restart_policy::jitter is to be from 0 to 1"},
    });
}

} // namespace coaccel
