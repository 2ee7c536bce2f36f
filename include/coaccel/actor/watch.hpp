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

template <std::copyable T>
class watch_source;

/// A subscriber to the latest value of a watch_source. Copyable; a copy has seen what the original has.
///
/// A slow subscriber skips values in between but never the last one. A subscription starts with the value of its
/// moment seen: `get()` reads that one, `async_changed()` waits for what comes after.
///
/// Thread safety: distinct objects from any thread; one object from one thread at a time.
template <std::copyable T>
class watch {
public:
    using value_type = T;
    using executor_type = asio::any_io_executor;

    /// A subscriber that has seen what the other one has.
    watch(const watch& other) : watch(other.state_, other.cursor_->seen.load(std::memory_order_relaxed)) {}
    watch(watch&&) noexcept = default;
    watch& operator=(watch&&) noexcept = default;

    /// Becomes a subscriber that has seen what the other one has.
    watch& operator=(const watch& other)
    {
        if (this != &other)
            *this = watch(other);
        return *this;
    }

    ~watch() = default;

    /// The latest value. Does not count as seeing it.
    T get() const { return state_->get(); }

    /// True when a value newer than the last one seen is there.
    bool has_changed() const noexcept { return state_->version() != cursor_->seen.load(std::memory_order_relaxed); }

    /// False once the source is closed; an unseen last value may still be there.
    bool is_open() const noexcept { return !state_->closed(); }

    /// Waits for a value newer than the last one seen, and sees it.
    ///
    /// Completion signature: void(error_code, T).
    /// Completes when: such a value exists, or the source is closed and its last value was seen.
    /// Executor: the handler's, or else the source's.
    /// Cancellation: total, partial, terminal; nothing counts as seen then.
    /// Errors: errc::closed, errc::already_waiting (a second wait on one subscriber), operation_aborted. The value is
    /// then the current one.
    template <asio::completion_token_for<void(error_code, T)> Token = default_token>
    auto async_changed(Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, T)>(detail::initiate_changed<T>(state_, cursor_), token);
    }

    executor_type get_executor() const noexcept { return state_->executor(); }

private:
    friend class watch_source<T>;

    watch(std::shared_ptr<detail::watch_state<T>> state, std::uint64_t seen)
        : state_(std::move(state)), cursor_(std::make_shared<detail::watch_cursor>(seen))
    {}

    std::shared_ptr<detail::watch_state<T>> state_;
    std::shared_ptr<detail::watch_cursor> cursor_;
};

/// Publishes the latest value to many subscribers. Move-only; destroying it closes the watch.
///
/// Thread safety: every function but move and destruction may be called from any thread.
template <std::copyable T>
class watch_source {
public:
    using value_type = T;
    using executor_type = asio::any_io_executor;

    /// A source whose handlers run on `ex` unless they have an executor of their own.
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

    /// Replaces the value and wakes every subscriber that waits. Does nothing once closed.
    void publish(T value) { state_->publish(std::move(value)); }

    /// Subscribers that have not seen the last value still get it, then errc::closed.
    void close() { state_->close(); }

    T get() const { return state_->get(); }                     ///< The latest value.
    bool is_open() const noexcept { return !state_->closed(); } ///< False once it is closed.
    /// A subscriber that has seen the latest value.
    watch<T> subscribe() const { return watch<T>(state_, state_->version()); }
    executor_type get_executor() const noexcept { return state_->executor(); }

private:
    std::shared_ptr<detail::watch_state<T>> state_;
};

} // namespace coaccel

#endif
