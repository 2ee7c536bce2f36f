#ifndef COACCEL_DEVICE_DEVICE_EXECUTOR_HPP
#define COACCEL_DEVICE_DEVICE_EXECUTOR_HPP

#include "device/timer_rule.hpp"

#include <coaccel/core/detail/post_with.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace coaccel::detail {

/// The executor of a device, and all that the device has there: posted functions, the timer, and outstanding work. When
/// the execution context is destroyed, all of it must be released before.
class device_executor {
public:
    explicit device_executor(asio::any_io_executor ex) : executor_(std::move(ex)), timer_(executor_.get()) {}

    const asio::any_io_executor& get() const noexcept { return executor_.get(); }

    /// Preconditions: the last posted turn has begun.
    template <class Function>
    void post_turn(Function&& f)
    {
        post_with(get(), turn_room_, std::forward<Function>(f));
    }

    /// Posts a runner of the completions. Preconditions: the last posted runner has begun.
    template <class Function>
    void post_runner(Function&& f)
    {
        post_with(get(), runner_room_, std::forward<Function>(f));
    }

    /// The owner's turn ends, and it has nothing to do until `when`; time_point::max(): until it is woken. The timer
    /// calls `owner.wake()` if the owner still exists. False: another turn must follow, which calls this again.
    template <class Owner>
    [[nodiscard]] bool wait_until(timer_rule::time_point when, timer_rule::time_point now, Owner& owner)
    {
        // Set before the owner was woken, so the turn that this has caused sees it. The handler of an earlier wait can
        // still be called when the timer has been cancelled or set again: it says nothing about this one.
        if (timer_rule_.is_set() && expired_ == waits_)
            timer_rule_.expired();
        switch (timer_rule_.wait_until(when, now)) {
        case timer_rule::action::none: return true;
        case timer_rule::action::look_again: return false;
        case timer_rule::action::cancel: timer_->cancel(); return true;
        case timer_rule::action::set: break;
        }
        timer_->expires_at(when);
        timer_->async_wait([this, n = ++waits_, weak = owner.weak_from_this()](const error_code& ec) {
            if (auto self = ec ? nullptr : weak.lock()) {
                // Part of the owner. On several threads the handler of an earlier wait can be the later one.
                for (auto last = expired_.load(); last < n && !expired_.compare_exchange_weak(last, n);) {
                }
                self->wake();
            }
        });
        return true;
    }

    void cancel_timer() { timer_->cancel(); }

    /// Reasons why the executor must keep running although no handler may be waiting.
    enum class work : std::uint8_t {
        /// The device stops: the remaining work may have no handler.
        stopping,
        /// A context is created or closed on another thread. Not owned by that thread, because it does not exist in a
        /// forked child.
        context,
        /// Requests wait that are no work themselves.
        requests,
    };

    void begin(work w) { guard(w).emplace(get()); }
    void end(work w) noexcept { guard(w).reset(); }
    bool has(work w) const noexcept { return guards_[static_cast<std::size_t>(w)].has_value(); }

    /// Releases the timer and the outstanding work. Neither may be used afterwards.
    void release_work() noexcept
    {
        timer_.reset();
        end(work::stopping);
        end(work::context);
        end(work::requests);
    }

    /// Moves the executor to `out`, to be destroyed outside all locks.
    void let_go(async_op_list& out) noexcept { executor_.let_go(out); }

private:
    using work_guard = asio::executor_work_guard<asio::any_io_executor>;

    std::optional<work_guard>& guard(work w) noexcept { return guards_[static_cast<std::size_t>(w)]; }

    held_executor executor_;
    /// Memory for posting; at most one turn and one runner are posted at a time.
    post_room turn_room_;
    post_room runner_room_;
    std::optional<asio::steady_timer> timer_;
    timer_rule timer_rule_;
    /// The number of waits for the timer, which is the number of the last one.
    std::uint64_t waits_ = 0;
    /// The last wait whose handler was called because the timer had expired.
    std::atomic<std::uint64_t> expired_{0};
    std::array<std::optional<work_guard>, 3> guards_;
};

} // namespace coaccel::detail

#endif
