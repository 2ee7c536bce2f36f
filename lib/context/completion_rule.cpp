#include "context/completion_rule.hpp"

namespace coaccel::detail {

completion_rule::action completion_rule::decide(bool in_flight, bool progressed, clock::time_point now) noexcept
{
    if (progressed)
        last_progress_ = now;
    if (!in_flight)
        return action::idle;
    switch (completion_) {
    case completion::polled: return action::poll;
    case completion::adaptive: return now - last_progress_ < spin_budget_ ? action::poll : action::arm;
    case completion::host_fn:
    case completion::sync: break;
    }
    return action::arm;
}

} // namespace coaccel::detail
