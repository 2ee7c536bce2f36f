#ifndef COACCEL_ACTOR_DETAIL_WATCH_STATE_HPP
#define COACCEL_ACTOR_DETAIL_WATCH_STATE_HPP

#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/detail/shutdown_hook.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/error.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

namespace coaccel::detail {

/// The position of one subscriber. Shared with its pending operation, because the handle may be moved or destroyed
/// meanwhile.
struct watch_cursor {
    explicit watch_cursor(std::uint64_t version) noexcept : seen(version) {}

    std::atomic<std::uint64_t> seen;
    std::atomic<bool> waiting{false};
};

template <class T>
class watch_state final : public shutdown_hook {
public:
    watch_state(asio::any_io_executor ex, T initial) : executor_(std::move(ex)), value_(std::move(initial))
    {
        enlist(executor_.get());
    }

    ~watch_state() { withdraw(); }

    const asio::any_io_executor& executor() const noexcept { return executor_.get(); }
    std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
    bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    T get() const
    {
        std::lock_guard lock(mutex_);
        return value_;
    }

    void publish(T value)
    {
        async_op_list woken;
        {
            std::lock_guard lock(mutex_);
            if (closed_.load(std::memory_order_relaxed))
                return;
            using std::swap;
            swap(value_, value); // the old value is destroyed outside the lock
            version_.fetch_add(1, std::memory_order_release);
            waiters_.move_all(woken);
        }
        woken.post_all();
    }

    void close()
    {
        async_op_list woken;
        {
            std::lock_guard lock(mutex_);
            closed_.store(true, std::memory_order_release);
            waiters_.move_all(woken);
        }
        woken.post_all();
    }

    void wait(async_op_base& op, watch_cursor& cursor)
    {
        if (cursor.waiting.exchange(true, std::memory_order_acquire)) {
            op.ec = errc::already_waiting;
            return op.post();
        }
        std::unique_lock lock(mutex_);
        if (shut_down_) {
            lock.unlock();
            return op.destroy();
        }
        if (version() == cursor.seen.load(std::memory_order_relaxed) && !closed()) {
            waiters_.add(op);
            return;
        }
        lock.unlock();
        op.post();
    }

    bool has_waiters() const
    {
        std::lock_guard lock(mutex_);
        return !waiters_.empty();
    }

    void cancel(async_op_base& op)
    {
        {
            std::lock_guard lock(mutex_);
            // After a shutdown the operation no longer exists, so the flag is checked first.
            if (shut_down_ || !op.waiting())
                return;
            waiters_.remove(op);
            op.ec = asio::error::operation_aborted;
        }
        op.post();
    }

    /// Second half of a wait, on the handler's executor: returns the newest value, not the one that woke the waiter.
    std::tuple<error_code, T> deliver(error_code ec, watch_cursor& cursor) const
    {
        std::lock_guard lock(mutex_);
        if (ec == errc::already_waiting)
            return {ec, value_};
        if (!ec && version() == cursor.seen.load(std::memory_order_relaxed))
            ec = errc::closed;
        if (!ec)
            cursor.seen.store(version(), std::memory_order_relaxed);
        cursor.waiting.store(false, std::memory_order_release);
        return {ec, value_};
    }

    void shutdown(async_op_list& out) noexcept override
    {
        std::lock_guard lock(mutex_);
        shut_down_ = true;
        waiters_.move_all(out);
        executor_.let_go(out);
    }

private:
    held_executor executor_;
    mutable std::mutex mutex_;
    T value_;
    std::atomic<std::uint64_t> version_{1};
    std::atomic<bool> closed_{false};
    wait_list waiters_;
    bool shut_down_ = false;
};

template <class T>
class watch_waiter : public async_op_base {
public:
    watch_waiter(std::shared_ptr<watch_state<T>> state, std::shared_ptr<watch_cursor> cursor) noexcept
        : state_(std::move(state)), cursor_(std::move(cursor))
    {}

    std::tuple<error_code, T> take() const { return state_->deliver(ec, *cursor_); }

protected:
    ~watch_waiter() = default;

private:
    std::shared_ptr<watch_state<T>> state_;
    std::shared_ptr<watch_cursor> cursor_;
};

template <class T>
class initiate_changed {
public:
    using executor_type = asio::any_io_executor;

    initiate_changed(std::shared_ptr<watch_state<T>> state, std::shared_ptr<watch_cursor> cursor) noexcept
        : state_(std::move(state)), cursor_(std::move(cursor))
    {}

    executor_type get_executor() const noexcept { return state_->executor(); }

    template <class Handler>
    void operator()(Handler&& handler) const
    {
        using op_type = handler_op<watch_waiter<T>, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), state_->executor(), state_, cursor_);
        op->on_cancel(canceller<watch_state<T>, async_op_base>{state_, op});
        state_->wait(*op, *cursor_);
    }

private:
    std::shared_ptr<watch_state<T>> state_;
    std::shared_ptr<watch_cursor> cursor_;
};

} // namespace coaccel::detail

#endif
