#ifndef COACCEL_DEVICE_LOAD_SUSPICION_HPP
#define COACCEL_DEVICE_LOAD_SUSPICION_HPP

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace coaccel::detail {

/// Whether the loading of a plan ends contexts. A load may run the ops of the plan once, so that a kernel, a plug-in or
/// a constant can make it fatal, in each context again. A plan that was being loaded when a context died of a fault is
/// suspect, and is loaded alone for a while. If contexts die even then, it is not loaded any more. Has no clock.
class load_suspicion {
public:
    using time_point = std::chrono::steady_clock::time_point;

    static constexpr auto window = std::chrono::minutes(1);
    /// How many contexts must die within the window, or without the plan having been loaded in between: contexts whose
    /// faults take longer than the window to find must not be excused for ever. More than one, because only the user
    /// makes the plan usable again, and a worker that something else has stopped for long counts as a fault too.
    static constexpr int most_losses = 2;

    /// Whether it must be loaded alone: until it has been loaded, and for a while after the loss.
    bool suspect(time_point now) const noexcept { return last_ && (!loaded_since_ || now - *last_ < window); }

    /// A context has died of a fault while the plan was being loaded beside other requests.
    void lost(time_point now) noexcept
    {
        note(now);
        ++unexplained_;
    }

    /// The same while nothing else was on the context. Returns how many earlier losses have the same cause.
    std::size_t lost_alone(time_point now) noexcept
    {
        note(now);
        ++alone_;
        refused_ |= alone_ >= most_losses;
        return std::exchange(unexplained_, 0);
    }

    /// Another cause was found for the last losses.
    void explained() noexcept { unexplained_ = 0; }

    /// The context of a standby has died of a fault while it loaded the plan, beside which a standby does nothing. It
    /// says nothing about the context of the device, where the plan is loaded.
    void lost_standby(time_point now) noexcept
    {
        last_ = now;
        ++on_standby_;
    }

    /// The plan has its instance on a standby.
    void loaded_on_standby() noexcept { on_standby_ = 0; }

    /// The plan has its first instance in the context of the device.
    void loaded() noexcept
    {
        on_standby_ = 0;
        loaded_since_ = true;
    }

    /// Whether it must not be loaded.
    bool refused() const noexcept { return refused_; }
    /// Whether it must not be loaded on a standby.
    bool refused_on_standby() const noexcept { return refused_ || on_standby_ >= most_losses; }

private:
    void note(time_point now) noexcept
    {
        if (!suspect(now)) {
            unexplained_ = 0;
            alone_ = 0;
        }
        last_ = now;
        loaded_since_ = false;
    }

    std::optional<time_point> last_;
    std::size_t unexplained_ = 0;
    int alone_ = 0;
    int on_standby_ = 0;
    /// The plan has been loaded since the last loss.
    bool loaded_since_ = false;
    bool refused_ = false;
};

} // namespace coaccel::detail

#endif
