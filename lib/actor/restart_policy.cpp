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
    if (!decider)
        return detail::option_error("restart_policy::decider is null");
    // The comparisons are written so that NaN fails them.
    return detail::check_options({
        {strategy == coaccel::strategy::one_for_one || strategy == coaccel::strategy::one_for_all ||
             strategy == coaccel::strategy::rest_for_one,
         "restart_policy::strategy", strategy, detail::an_enumerator},
        {max_restarts >= 0, "restart_policy::max_restarts", max_restarts, detail::not_negative},
        {window > duration::zero(), "restart_policy::window", window, detail::above_zero},
        {initial_backoff >= duration::zero(), "restart_policy::initial_backoff", initial_backoff, detail::not_negative},
        {initial_backoff <= max_backoff, "restart_policy::initial_backoff", initial_backoff,
         "it must be at most max_backoff"},
        {std::isfinite(multiplier) && multiplier >= 1.0, "restart_policy::multiplier", multiplier,
         "it must be at least 1 and finite"},
        {jitter >= 0.0 && jitter <= 1.0, "restart_policy::jitter", jitter, "it must be from 0 to 1"},
    });
}

} // namespace coaccel
