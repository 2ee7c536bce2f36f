#include "worker/parent/reply_polling.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::worker {
namespace {

/// Polling around the expected time of a reply lasts no longer than the worker's options allow.
context_options limited(context_options options, std::chrono::nanoseconds spin) noexcept
{
    options.spin_budget = std::min(options.spin_budget, spin);
    return options;
}

} // namespace

reply_polling::reply_polling(context_options options, std::chrono::nanoseconds spin) noexcept
    : spin_(spin), rule_(limited(options, spin))
{}

void reply_polling::replied(std::uint64_t id, time_point now) noexcept
{
    if (estimator_.is_about(id))
        estimator_.ended(now, looking_);
}

void reply_polling::begin_turn(time_point now) noexcept
{
    if (now - std::max(last_look_, last_moved_) >= detail::duration_estimator::attention)
        looking_ = false;
}

void reply_polling::idle(time_point now) noexcept
{
    last_look_ = now;
    looking_ = true;
}

reply_polling::decision reply_polling::end_turn(bool moved, time_point now) noexcept
{
    using action = detail::wait_policy::action;
    last_look_ = now;
    if (moved)
        last_moved_ = now;
    const auto next = rule_.decide(true, moved, now, spins() ? estimator_.next() : detail::wait_policy::expected_end());
    if (next.due)
        estimator_.due();
    const bool before = std::exchange(looking_, next.what == action::poll || next.what == action::arm_and_poll ||
                                                    now - last_moved_ < spin_);
    if (!looking_)
        return {.look_at = next.look_at};
    if (!before)
        looking_since_ = now;
    return {.poll = true, .awake = !before, .looked_for = now - std::max(looking_since_, last_moved_)};
}

} // namespace coaccel::worker
