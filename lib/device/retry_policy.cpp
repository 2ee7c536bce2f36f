#include "core/option_check.hpp"

#include <coaccel/device/retry_policy.hpp>

#include <algorithm>

namespace coaccel {

error_code retry_policy::check() const noexcept
{
    if (!retryable)
        return detail::option_error("retry_policy::retryable is null");
    return detail::check_options({
        {attempts >= 1, "retry_policy::attempts", attempts, "it must be at least 1"},
        {backoff >= clock::duration::zero(), "retry_policy::backoff", backoff, detail::not_negative},
        {max_backoff >= clock::duration::zero(), "retry_policy::max_backoff", max_backoff, detail::not_negative},
        {multiplier >= 1.0, "retry_policy::multiplier", multiplier, "it must be at least 1"},
    });
}

std::optional<retry_counter::clock::duration> retry_counter::failed(const error_code& ec,
                                                                    clock::time_point now) noexcept
{
    if (made_ >= policy_.attempts || !policy_.retryable(ec))
        return std::nullopt;
    const auto delay = std::min(next_, policy_.max_backoff);
    // A subtraction, because now + delay could overflow.
    if (now >= policy_.deadline || delay >= policy_.deadline - now)
        return std::nullopt;
    ++made_;
    // In floating point, because the product may overflow.
    const double longer = static_cast<double>(delay.count()) * policy_.multiplier;
    const bool capped = longer >= static_cast<double>(policy_.max_backoff.count());
    next_ = capped ? policy_.max_backoff : clock::duration(static_cast<clock::rep>(longer));
    return delay;
}

} // namespace coaccel
