#include "device/lifecycle.hpp"

namespace coaccel::detail {

lifecycle::step lifecycle::start() noexcept
{
    if (phase_ != phase::unborn || stopping_)
        return {};
    phase_ = phase::creating;
    return {command::create};
}

void lifecycle::created() noexcept
{
    phase_ = phase::running;
    born_ = true;
    suspect_ = false;
}

lifecycle::step lifecycle::create_failed(const error_code& why, time_point now, double random)
{
    // A dead context that stands in the way of every new one goes only with the process.
    return is_context_lost(why) ? lost_for_good(why) : decide(why, now, random);
}

lifecycle::step lifecycle::lost(const error_code& why, time_point now, double random)
{
    return decide(why, now, random);
}

lifecycle::step lifecycle::lost_for_good(const error_code& why) noexcept
{
    reason_ = why;
    phase_ = phase::failed;
    return {command::fail};
}

lifecycle::step lifecycle::decide(const error_code& why, time_point now, double random)
{
    reason_ = why;
    // Nothing but a change from outside brings these back, whatever the policy hopes.
    const bool hopeless = is_device_lost(why) || is_caller_error(why);
    const auto decision =
        hopeless ? restart_budget::decision{directive::stop, {}} : budget_.on_failure(now, why, random);
    // A dead context cannot be resumed, so resuming is restarting here.
    if (decision.directive == directive::restart || decision.directive == directive::resume) {
        phase_ = phase::waiting;
        return {command::wait, now + decision.delay};
    }
    phase_ = phase::failed;
    return {command::fail};
}

lifecycle::step lifecycle::due() noexcept
{
    if (phase_ != phase::waiting)
        return {};
    phase_ = phase::creating;
    return {command::create};
}

void lifecycle::stop(bool abandon) noexcept
{
    stopping_ = true;
    abandon_ |= abandon;
}

lifecycle::step lifecycle::advance_stop(bool has_work) noexcept
{
    if (!stopping_)
        return {};
    switch (phase_) {
    case phase::running:
        if (has_work && !abandon_)
            return {};
        phase_ = phase::closing;
        return {command::close};
    case phase::unborn:
    case phase::waiting:
    case phase::failed:
        if (has_work)
            return {};
        phase_ = phase::stopped;
        return {command::finish};
    case phase::creating:
    case phase::closing:
    case phase::stopped: break;
    }
    return {};
}

device_state lifecycle::state() const noexcept
{
    if (phase_ == phase::stopped)
        return device_state::stopped;
    if (stopping_)
        return device_state::stopping;
    switch (phase_) {
    case phase::failed: return device_state::failed;
    case phase::running: return suspect_ ? device_state::suspect : device_state::ready;
    default: return born_ ? device_state::rebuilding : device_state::starting;
    }
}

} // namespace coaccel::detail
