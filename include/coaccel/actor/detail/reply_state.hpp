#ifndef COACCEL_ACTOR_DETAIL_REPLY_STATE_HPP
#define COACCEL_ACTOR_DETAIL_REPLY_STATE_HPP

#include <coaccel/actor/detail/dropped_replies.hpp>
#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coaccel::detail {

template <class R>
using reply_value = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

template <class R>
class reply_waiter : public async_op_base {
public:
    auto take()
    {
        if constexpr (std::is_void_v<R>)
            return std::tuple<error_code>(ec);
        else
            return std::tuple<error_code, R>(ec, std::move(*value));
    }

    // Default-constructed until the answer arrives: the value that accompanies an error is constructed when the request
    // starts.
    std::optional<reply_value<R>> value{std::in_place};

protected:
    ~reply_waiter() = default;
};

/// The state shared by a request and its reply_to. The first of reply, drop, deadline and cancellation wins.
template <class R>
class reply_state : public shutdown_hook, public dropped_reply, public std::enable_shared_from_this<reply_state<R>> {
public:
    using clock = std::chrono::steady_clock;

    void settle(error_code ec)
    {
        if (reply_waiter<R>* op = claim())
            finish(*op, ec);
    }

    void settle_with(reply_value<R>&& value)
    {
        if (reply_waiter<R>* op = claim()) {
            op->value.emplace(std::move(value));
            finish(*op, {});
        }
    }

    /// Called when the reply_to is destroyed unanswered.
    void drop()
    {
        if (const error_code* reason = drop_scope::current())
            settle(*reason);
        else if (wanted() && !hold_back())
            settle(errc::no_reply);
    }

    void answer(error_code ec) final { settle(ec); }

    void cancel(async_op_base&) { settle(asio::error::operation_aborted); }

    bool wanted() const
    {
        std::lock_guard lock(mutex_);
        return op_ != nullptr;
    }

    void shutdown(async_op_list& out) noexcept override
    {
        std::lock_guard lock(mutex_);
        shut_down_ = true;
        // The timer must not outlive its context; this state may.
        timer_.reset();
        if (op_)
            out.push_back(*std::exchange(op_, nullptr));
    }

protected:
    reply_state() = default;
    virtual ~reply_state() = default;

    /// Returns false when the context is already destroyed; the operation is then destroyed too.
    bool arm(reply_waiter<R>& op, const asio::any_io_executor& ex, clock::time_point deadline)
    {
        this->enlist(ex);
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            op.destroy();
            return false;
        }
        op_ = &op;
        if (deadline != clock::time_point::max()) {
            timer_.emplace(ex, deadline);
            timer_->async_wait(expiry{this->weak_from_this()});
        }
        return true;
    }

    /// Leaves a dropped reply to the code that knows why it was dropped. False when there is no such code.
    virtual bool hold_back() { return false; }

    /// Withdraws the request if it still waits for room.
    virtual void withdraw_request() {}

private:
    /// Returns the waiter on the first call, null afterwards.
    reply_waiter<R>* claim()
    {
        std::lock_guard lock(mutex_);
        timer_.reset();
        return std::exchange(op_, nullptr);
    }

    void finish(reply_waiter<R>& op, error_code ec)
    {
        op.ec = ec;
        withdraw_request();
        op.post();
    }

    struct expiry {
        std::weak_ptr<reply_state> state;

        void operator()(error_code ec) const
        {
            if (ec)
                return;
            if (auto s = state.lock())
                s->settle(errc::deadline_exceeded);
        }
    };

    mutable std::mutex mutex_;
    reply_waiter<R>* op_ = nullptr;
    std::optional<asio::steady_timer> timer_;
    bool shut_down_ = false;
};

} // namespace coaccel::detail

#endif
