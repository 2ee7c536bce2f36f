#ifndef COACCEL_DEVICE_STANDBY_SLOT_HPP
#define COACCEL_DEVICE_STANDBY_SLOT_HPP

#include <coaccel/core/config.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel::detail {

/// The state of the context that a device holds as its standby, and when to make another one. It has no clock, context
/// or threads.
///
/// A standby that is lost is replaced, but at most one is made per `pause`. After a failure none is made until the
/// device has another context: another attempt would fail in the same way.
class COACCEL_DECL standby_slot {
public:
    using time_point = std::chrono::steady_clock::time_point;

    static constexpr auto pause = std::chrono::seconds(1);

    explicit standby_slot(bool enabled) noexcept : enabled_(enabled) {}

    /// Whether to begin to make one. `has_plans`: the device has plans for it. Without any, the first one is not made;
    /// later ones are, because their worker is no longer with the other standbys.
    bool due(time_point now, bool has_plans) const noexcept;
    /// When to ask `due` again; time_point::max(): after the next event.
    time_point next_look(bool has_plans) const noexcept;

    void begin(time_point now) noexcept;
    void made() noexcept { state_ = state::present; }
    void failed() noexcept;
    /// It was lost, has taken over, or has been ended.
    void left() noexcept;
    /// It is being ended.
    void end() noexcept { state_ = state::ending; }
    /// The device has another context.
    void renewed() noexcept;

    bool empty() const noexcept { return state_ == state::empty; }
    bool creating() const noexcept { return state_ == state::creating; }
    bool present() const noexcept { return state_ == state::present; }

    /// The device has no context and waits for the one that is being made.
    void want() noexcept { wanted_ = true; }
    bool wanted() const noexcept { return wanted_; }

private:
    enum class state : std::uint8_t { empty, creating, present, ending };

    const bool enabled_;
    state state_ = state::empty;
    bool used_ = false;
    bool wanted_ = false;
    time_point not_before_{};
};

} // namespace coaccel::detail

#endif
