#include "device/lifecycle.hpp"

#include <utility>

namespace coaccel::detail {

bool is_out_of_reach(const error_code& why) noexcept
{
    return is_device_lost(why) || why == errc::library_missing || why == errc::library_too_old;
}

lifecycle::step lifecycle::start() noexcept
{
    if (phase_ != phase::unborn || stopping_)
        return {};
    return create();
}

lifecycle::step lifecycle::create() noexcept
{
    phase_ = phase::creating;
    replace_ = gave_up_ = false;
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
    // A dead context that prevents every new one disappears only with the process.
    return is_context_lost(why) ? lost_for_good(why) : decide(why, now, random);
}

lifecycle::step lifecycle::lost(const error_code& why, time_point now, double random, bool standby)
{
    const step next = decide(why, now, random);
    return next.what == command::wait && standby ? create() : next;
}

lifecycle::step lifecycle::lost_excused(const error_code& why, time_point now, std::size_t earlier)
{
    budget_.forgive(earlier);
    const step next = decide(why, now, 0);
    if (next.what == command::wait)
        budget_.forgive(1);
    else if (!std::exchange(used_up_, false))
        return next;
    return create();
}

lifecycle::step lifecycle::lost_for_good(const error_code& why) noexcept
{
    reason_ = why;
    used_up_ = false;
    for_good_ = true;
    return fail();
}

lifecycle::step lifecycle::revive() noexcept
{
    if (phase_ != phase::failed || for_good_ || stopping_)
        return {};
    budget_.reset();
    return create();
}

lifecycle::step lifecycle::fail() noexcept
{
    phase_ = phase::failed;
    replace_ = false;
    return {command::fail};
}

lifecycle::step lifecycle::decide(const error_code& why, time_point now, double random)
{
    reason_ = why;
    // Only an external change resolves these errors, so the policy is not asked.
    const bool hopeless = is_out_of_reach(why) || is_caller_error(why);
    auto decision = hopeless ? restart_budget::decision{directive::stop, {}} : budget_.on_failure(now, why, random);
    // A dead context cannot be resumed, so `resume` means restart here, and counts as one.
    if (decision.directive == directive::resume)
        decision = budget_.restart(now, random);
    used_up_ = decision.used_up;
    if (decision.directive == directive::restart) {
        phase_ = phase::waiting;
        return {command::wait, now + decision.delay};
    }
    return fail();
}

lifecycle::step lifecycle::due() noexcept
{
    if (phase_ != phase::waiting)
        return {};
    return create();
}

void lifecycle::replace() noexcept
{
    replace_ = !stopping_ && phase_ != phase::failed;
}

lifecycle::step lifecycle::advance_replace(bool busy) noexcept
{
    // A context that is about to be lost is replaced by the restart after the loss.
    if (!replace_ || phase_ != phase::running || busy || suspect_)
        return {};
    phase_ = phase::retiring;
    return {command::close};
}

lifecycle::step lifecycle::gone(bool has_work) noexcept
{
    if (phase_ == phase::retiring && (has_work || !stopping_))
        return create();
    phase_ = phase::stopped;
    return {command::finish};
}

void lifecycle::stop(bool abandon) noexcept
{
    stopping_ = true;
    abandon_ |= abandon;
    replace_ = false;
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
        if ((has_work && !abandon_) || std::exchange(gave_up_, true))
            return {};
        return {command::give_up};
    case phase::retiring:
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
    case phase::running:
        if (suspect_)
            return device_state::suspect;
        return replace_ ? device_state::rebuilding : device_state::ready;
    default: return born_ ? device_state::rebuilding : device_state::starting;
    }
}

} // namespace coaccel::detail
