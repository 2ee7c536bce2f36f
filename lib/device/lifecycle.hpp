#ifndef COACCEL_DEVICE_LIFECYCLE_HPP
#define COACCEL_DEVICE_LIFECYCLE_HPP

#include <coaccel/actor/restart_budget.hpp>
#include <coaccel/device/device_state.hpp>

namespace coaccel::detail {

/// Whether a context could not be made because what is behind it is not there, or not any more.
COACCEL_DECL bool is_out_of_reach(const error_code& why) noexcept;

/// The life of a device: when to make a context, when to wait, when to give up, when to stop.
/// Has no clock, no context and no threads in it; it is told what happened and says what to do.
class COACCEL_DECL lifecycle {
public:
    using time_point = restart_budget::time_point;

    enum class command : std::uint8_t {
        none,
        /// Make a context.
        create,
        /// Call `due` at `when`.
        wait,
        /// Refuse everything from now on.
        fail,
        /// End the context.
        close,
        /// The context that is being made is not wanted any more.
        give_up,
        /// The device has stopped.
        finish,
    };

    struct step {
        command what = command::none;
        time_point when{};
    };

    explicit lifecycle(const restart_policy& policy)
        : max_restarts_(static_cast<std::size_t>(policy.max_restarts)), budget_(policy)
    {}

    step start() noexcept;
    void created() noexcept;
    step create_failed(const error_code& why, time_point now, double random);
    /// The context was of a kind that cannot be followed by another in this process.
    step lost_for_good(const error_code& why) noexcept;
    /// The context shows signs of death.
    void condemned() noexcept { suspect_ = true; }
    /// `standby`: another context stands ready, or will soon, so that there is nothing to spare by waiting.
    step lost(const error_code& why, time_point now, double random, bool standby = false);
    step due() noexcept;

    /// Makes a context for a device that has failed, with a fresh budget. Not for one that has failed for good.
    step revive() noexcept;
    /// No context can follow in this process.
    bool failed_for_good() const noexcept { return failed() && for_good_; }

    /// A context made from now on is wanted in place of the one there is.
    void replace() noexcept;
    /// What replacing wants next. `busy`: something is in flight.
    step advance_replace(bool busy) noexcept;
    /// The context that was to be closed is gone.
    step gone(bool has_work) noexcept;

    /// No new work. With `abandon`, what there is ends with the context.
    void stop(bool abandon) noexcept;
    /// What stopping wants next.
    step advance_stop(bool has_work) noexcept;
    void closed() noexcept { phase_ = phase::stopped; }

    /// How many restarts of the budget were used in the window at `now`.
    std::size_t restarts(time_point now) const noexcept { return max_restarts_ - budget_.left(now); }
    std::size_t max_restarts() const noexcept { return max_restarts_; }

    device_state state() const noexcept;
    const error_code& reason() const noexcept { return reason_; }
    bool stopping() const noexcept { return stopping_; }
    /// Whether what there is ends with its context.
    bool abandoning() const noexcept { return abandon_; }
    bool failed() const noexcept { return phase_ == phase::failed; }
    bool running() const noexcept { return phase_ == phase::running; }
    /// Has a context of which nothing bad is known.
    bool healthy() const noexcept { return running() && !suspect_; }
    /// Whether the context may be given work.
    bool open() const noexcept { return running() && !replace_; }
    bool replacing() const noexcept { return replace_; }

private:
    enum class phase : std::uint8_t { unborn, creating, waiting, running, retiring, failed, closing, stopped };

    step create() noexcept;
    step fail() noexcept;
    step decide(const error_code& why, time_point now, double random);

    std::size_t max_restarts_;
    restart_budget budget_;
    phase phase_ = phase::unborn;
    bool born_ = false;
    bool suspect_ = false;
    bool replace_ = false;
    bool stopping_ = false;
    bool abandon_ = false;
    bool gave_up_ = false;
    bool for_good_ = false;
    error_code reason_;
};

} // namespace coaccel::detail

#endif
