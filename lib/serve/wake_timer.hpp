#ifndef COACCEL_SERVE_WAKE_TIMER_HPP
#define COACCEL_SERVE_WAKE_TIMER_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <optional>

namespace coaccel::detail {

/// Wakes an object that is guarded by a mutex. All functions are called with that mutex locked.
class wake_timer {
public:
    using time_point = std::chrono::steady_clock::time_point;

    static constexpr time_point never = time_point::max();

    explicit wake_timer(const asio::any_io_executor& ex) : timer_(std::in_place, ex) {}

    /// The owner has nothing to do until `when`; never: until something else happens. Calls `owner.wake()` then or
    /// earlier, on the executor and without the mutex, if the owner still exists.
    ///
    /// Exceptions: std::bad_alloc; the timer is not set then.
    template <class Owner>
    void wait_until(time_point when, Owner& owner)
    {
        if (!timer_ || when == set_to_)
            return;
        // A timer that is set too early costs one call of wake().
        if (when != never && set_to_ < when)
            return;
        set_to_ = never;
        if (when == never) {
            // It would keep the executor running.
            timer_->cancel();
            return;
        }
        timer_->expires_at(when);
        timer_->async_wait([weak = owner.weak_from_this()](const boost::system::error_code& ec) {
            if (auto self = ec ? nullptr : weak.lock())
                self->wake();
        });
        set_to_ = when;
    }

    /// Called in `owner.wake()`.
    void woken() noexcept { set_to_ = never; }

    /// The execution context is being destroyed.
    void release() noexcept { timer_.reset(); }

private:
    std::optional<asio::steady_timer> timer_;
    time_point set_to_ = never;
};

} // namespace coaccel::detail

#endif
