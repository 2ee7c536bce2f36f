#ifndef COACCEL_ACTOR_WATCH_HPP
#define COACCEL_ACTOR_WATCH_HPP

#include <coaccel/actor/detail/watch_state.hpp>
#include <coaccel/core/as_result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

namespace coaccel {

namespace detail {
struct watch_access;
} // namespace detail

template <std::copyable T>
class watch_source;

/// A subscriber to the latest value of a watch_source. Copyable; a copy has seen the same values as the original.
///
/// A slow subscriber skips intermediate values but never the last one. The value at the time of the subscription counts
/// as seen: `get()` reads it, `async_changed()` waits for a newer one.
///
/// Exceptions: copies and initiating calls throw std::bad_alloc when there is no memory; no operation is started
/// then, and a failed assignment changes nothing. get() throws what the copy constructor of T throws.
/// Thread safety: distinct objects from any thread; one object from one thread at a time.
template <std::copyable T>
class watch {
public:
    using value_type = T;
    using executor_type = asio::any_io_executor;

    /// A subscriber that has seen the same values as `other`.
    watch(const watch& other) : watch(other.state_, other.cursor_->seen.load(std::memory_order_relaxed)) {}
    watch(watch&&) noexcept = default;
    watch& operator=(watch&&) noexcept = default;

    /// Becomes a subscriber that has seen the same values as `other`.
    watch& operator=(const watch& other)
    {
        if (this != &other)
            *this = watch(other);
        return *this;
    }

    ~watch() = default;

    /// The latest value. It does not count as seen.
    T get() const { return state_->get(); }

    /// True when there is a value newer than the last one seen.
    bool has_changed() const noexcept { return state_->version() != cursor_->seen.load(std::memory_order_relaxed); }

    /// False once the source is closed; there may still be an unseen last value.
    bool is_open() const noexcept { return !state_->closed(); }

    /// Waits for a value newer than the last one seen, and marks it as seen.
    ///
    /// Completion signature: void(error_code, T).
    /// Completes when: such a value exists, or the source is closed and its last value was seen.
    /// Executor: the handler's, or else the source's.
    /// Cancellation: total, partial, terminal; no value is then marked as seen.
    /// Errors: errc::closed, errc::already_waiting (a second wait on one subscriber), operation_aborted. The value is
    /// then the current one.
    /// Exceptions: T is copied on the handler's executor. If that throws, the exception leaves its run(), the handler
    /// is not called, and the value may count as seen.
    template <asio::completion_token_for<void(error_code, T)> Token = default_token>
    auto async_changed(Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, T)>(detail::initiate_changed<T>(state_, cursor_), token);
    }

    executor_type get_executor() const noexcept { return state_->executor(); }

private:
    friend class watch_source<T>;
    friend struct detail::watch_access;

    watch(std::shared_ptr<detail::watch_state<T>> state, std::uint64_t seen)
        : state_(std::move(state)), cursor_(std::make_shared<detail::watch_cursor>(seen))
    {}

    std::shared_ptr<detail::watch_state<T>> state_;
    std::shared_ptr<detail::watch_cursor> cursor_;
};

/// Publishes the latest value to many subscribers. Move-only; the destructor closes the watch.
///
/// Exceptions: the constructor and subscribe() throw std::bad_alloc when there is no memory; get() throws what the copy
/// constructor of T throws. publish() throws what swapping two T throws; subscribers are not woken then, and the value
/// is what the swap leaves. publish() and close() throw nothing else if the subscribers' handlers run on an io_context
/// or a thread_pool; on another executor they throw std::bad_alloc when there is no memory for a completion.
/// Thread safety: every function except move and destruction may be called from any thread.
template <std::copyable T>
class watch_source {
public:
    using value_type = T;
    using executor_type = asio::any_io_executor;

    /// Makes a source whose handlers run on `ex` unless they have an associated executor.
    watch_source(executor_type ex, T initial)
        : state_(std::make_shared<detail::watch_state<T>>(std::move(ex), std::move(initial)))
    {}

    watch_source(watch_source&&) noexcept = default;

    watch_source& operator=(watch_source&& other) noexcept
    {
        auto old = std::exchange(state_, std::move(other.state_));
        if (old && old != state_)
            old->close();
        return *this;
    }

    ~watch_source()
    {
        if (state_)
            state_->close();
    }

    /// Replaces the value and wakes every waiting subscriber. Does nothing once closed.
    void publish(T value) { state_->publish(std::move(value)); }

    /// Closes the watch. Subscribers that have not seen the last value still receive it, then errc::closed.
    void close() { state_->close(); }

    T get() const { return state_->get(); }                     ///< The latest value.
    bool is_open() const noexcept { return !state_->closed(); } ///< False once the source is closed.
    /// Makes a subscriber for which the latest value counts as seen.
    watch<T> subscribe() const { return watch<T>(state_, state_->version()); }
    executor_type get_executor() const noexcept { return state_->executor(); }

private:
    std::shared_ptr<detail::watch_state<T>> state_;
};

} // namespace coaccel

#endif
