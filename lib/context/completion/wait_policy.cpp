#include "context/completion/wait_policy.hpp"

#include <algorithm>

namespace coaccel::detail {

wait_policy::decision wait_policy::decide(bool in_flight, bool progressed, clock::time_point now,
                                          const expected_end& next) noexcept
{
    if (progressed)
        last_progress_ = now;
    if (!in_flight)
        return {action::idle};
    switch (completion_) {
    case completion::polled: return {action::poll};
    case completion::adaptive: return adapt(now, next);
    case completion::host_fn:
        if (const auto until = last_progress_ + last_look; now < until)
            return {.what = action::arm_and_poll, .until = until};
        break;
    case completion::sync: break;
    }
    return {action::arm};
}

wait_policy::decision wait_policy::adapt(clock::time_point now, const expected_end& next) const noexcept
{
    if (const auto until = last_progress_ + spin_budget_; now < until)
        return {.what = action::poll, .until = until};
    if (next.end == clock::time_point::max() || spin_budget_ == clock::duration::zero())
        return {action::arm};
    // Covers the delay of a timer and the wake-up of a sleeping core. Not wider for long ops, although their end is
    // less certain: a caller of `poll` waits for the whole interval, and a late report matters little for a long op.
    const auto margin = 12 * spin_budget_;
    const auto begin = next.end - margin;
    if (now < begin && !next.reliable)
        return {action::arm, begin};
    if (now + nap <= begin)
        return {action::wait, std::min(begin, now + std::max(nap, next.length / 32))};
    if (now < begin)
        return {.what = action::poll, .until = begin};
    if (const auto until = next.end + margin; now < until)
        return {.what = action::poll, .until = until, .due = true};
    return {action::arm};
}

} // namespace coaccel::detail
