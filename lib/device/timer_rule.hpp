#ifndef COACCEL_DEVICE_TIMER_RULE_HPP
#define COACCEL_DEVICE_TIMER_RULE_HPP

#include <chrono>
#include <cstdint>
#include <utility>

namespace coaccel::detail {

/// Decides when the timer of a device is set or cancelled. Both are system calls, so they are avoided where possible.
class timer_rule {
public:
    using time_point = std::chrono::steady_clock::time_point;

    enum class action : std::uint8_t {
        none,       ///< The timer is right, or expires early, which costs only a turn.
        look_again, ///< Another turn must follow, which asks again.
        set,        ///< Set it to the time.
        cancel,     ///< Cancel it.
    };

    /// The device has nothing to do until `when`; time_point::max(): until it is woken.
    action wait_until(time_point when, time_point now) noexcept
    {
        if (when == set_to_)
            return action::none;
        if (when != never) {
            idle_ = false;
            if (now < set_to_ && set_to_ != never && when > set_to_)
                return action::none;
        } else if (!std::exchange(idle_, true)) {
            // It must be cancelled, because it keeps the executor running. That happens one turn later: a caller that
            // starts its next op when the last one completes has done so by then.
            return action::look_again;
        }
        set_to_ = when;
        return when == never ? action::cancel : action::set;
    }

    /// Whether the timer was set and has not been cancelled, as far as is known.
    bool is_set() const noexcept { return set_to_ != never; }

    /// The timer has expired. By the clock of the device that may be a little before the time to which it was set; then
    /// it must be set again.
    void expired() noexcept { set_to_ = never; }

private:
    static constexpr time_point never = time_point::max();

    time_point set_to_ = never;
    /// In the last turn there was nothing to wait for, but the timer was still set.
    bool idle_ = false;
};

} // namespace coaccel::detail

#endif
