#ifndef COACCEL_DEVICE_LIFECYCLE_HPP
#define COACCEL_DEVICE_LIFECYCLE_HPP

#include <coaccel/actor/restart_budget.hpp>
#include <coaccel/device/device_state.hpp>

namespace coaccel::detail {

/// Whether a context could not be created because the device or a library is missing, or no longer available.
COACCEL_DECL bool is_out_of_reach(const error_code& why) noexcept;

/// The state machine of a device's life: when to create a context, when to wait, when to give up, when to stop. It has
/// no clock, context or threads; it receives events and returns commands.
class COACCEL_DECL lifecycle {
public:
    using time_point = restart_budget::time_point;

    enum class command : std::uint8_t {
        none,
        /// Create a context.
        create,
        /// Call `due` at `when`.
        wait,
        /// Reject all requests from now on.
        fail,
        /// Close the context.
        close,
        /// The context that is being created is no longer needed.
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
    /// The context is lost, and no other can follow in this process.
    step lost_for_good(const error_code& why) noexcept;
    /// The context shows signs of a fatal fault.
    void condemned() noexcept { suspect_ = true; }
    /// `standby`: another context is ready or will be soon, so the restart need not be delayed.
    step lost(const error_code& why, time_point now, double random, bool standby = false);
    /// The context is lost for a reason that is known and gone. The loss does not count, nor do the `earlier` losses
    /// before it that have the same cause, and the restart is not delayed.
    step lost_excused(const error_code& why, time_point now, std::size_t earlier);
    step due() noexcept;

    /// Creates a context for a device that has failed, with a fresh restart budget. Does nothing if it has failed for
    /// good.
    step revive() noexcept;
    /// No other context can be created in this process.
    bool failed_for_good() const noexcept { return failed() && for_good_; }

    /// Requests that a new context replaces the current one.
    void replace() noexcept;
    /// The next command for the replacement. `busy`: requests are in flight or must still run on the old context.
    step advance_replace(bool busy) noexcept;
    /// The context that was being closed is gone.
    step gone(bool has_work) noexcept;

    /// Accepts no new work. With `abandon`, existing work ends with the context.
    void stop(bool abandon) noexcept;
    /// The next command for stopping.
    step advance_stop(bool has_work) noexcept;
    void closed() noexcept { phase_ = phase::stopped; }

    /// How many restarts of the budget are used in the window at `now`.
    std::size_t restarts(time_point now) const noexcept { return max_restarts_ - budget_.left(now); }
    std::size_t max_restarts() const noexcept { return max_restarts_; }
    /// Whether the last failure was not followed by a restart because the budget is used up.
    bool used_up() const noexcept { return used_up_; }

    device_state state() const noexcept;
    const error_code& reason() const noexcept { return reason_; }
    bool stopping() const noexcept { return stopping_; }
    /// Whether existing work ends with its context.
    bool abandoning() const noexcept { return abandon_; }
    bool failed() const noexcept { return phase_ == phase::failed; }
    bool running() const noexcept { return phase_ == phase::running; }
    /// Has a context without known problems.
    bool healthy() const noexcept { return running() && !suspect_; }
    /// Whether the context accepts new work.
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
    bool used_up_ = false;
    error_code reason_;
};

} // namespace coaccel::detail

#endif
