#include <coaccel/actor/restart_policy.hpp>

#include <cmath>

namespace coaccel {

directive restart_always(const error_code&) noexcept
{
    return directive::restart;
}

error_code restart_policy::validate() const noexcept
{
    const bool strategy_known = strategy == coaccel::strategy::one_for_one ||
                                strategy == coaccel::strategy::one_for_all ||
                                strategy == coaccel::strategy::rest_for_one;
    const bool times_ordered = duration::zero() <= initial_backoff && initial_backoff <= max_backoff;
    // Comparisons are written so that a NaN fails them.
    const bool factors_in_range = std::isfinite(multiplier) && multiplier >= 1.0 && jitter >= 0.0 && jitter <= 1.0;
    if (!decider || !strategy_known || max_restarts < 0 || window <= duration::zero() || !times_ordered ||
        !factors_in_range)
        return errc::invalid_option;
    return {};
}

} // namespace coaccel
