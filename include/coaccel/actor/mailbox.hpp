#ifndef COACCEL_ACTOR_MAILBOX_HPP
#define COACCEL_ACTOR_MAILBOX_HPP

#include <coaccel/actor/detail/mailbox_ops.hpp>
#include <coaccel/core/as_result.hpp>
#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel {

/// The requirements on a message type. The move constructor must not throw: a claimed cell of the queue is always
/// filled, and a message that was taken always reaches its handler. Messages are never assigned.
template <class M>
concept message = std::is_object_v<M> && std::is_nothrow_move_constructible_v<M> && std::is_nothrow_destructible_v<M>;

/// The sending side of a mailbox: copyable, and safe to use after the mailbox is destroyed (errc::closed).
///
/// Exceptions: async_send throws std::bad_alloc when there is no memory for the operation; nothing has been sent then.
/// try_send does not throw. With handlers on executors other than those of an io_context or a thread_pool, such as a
/// strand, both also throw std::bad_alloc when there is no memory for a completion; the message may be sent then.
/// Thread safety: every function may be called from any thread, also on the same object.
template <message M>
class mailbox_ref {
public:
    using message_type = M; ///< The type of the messages.
    using executor_type = asio::any_io_executor;

    /// Sends without waiting; moves from `m` only when it is accepted.
    ///
    /// Errors: errc::queue_full, also while earlier senders wait, because they are not overtaken; errc::closed;
    /// errc::actor_stopped for the mailbox of an actor that has ended.
    [[nodiscard]] error_code try_send(M&& m) const { return state_->try_send(m); }

    /// Sends, and waits for room if necessary. Waiting senders are served in order.
    ///
    /// With g++ 12, move a named local variable in: temporaries of aggregate type break inside co_await expressions.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the mailbox has accepted the message.
    /// Executor: the handler's, or else the mailbox's.
    /// Cancellation: total, partial, terminal; a cancelled message was not and will not be delivered.
    /// Errors: errc::closed (the message was not accepted), errc::actor_stopped likewise for an actor that has ended,
    /// operation_aborted.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_send(M m, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_send<M>(state_), token, std::move(m));
    }

    std::size_t capacity() const noexcept { return state_->capacity(); } ///< The maximum number of messages.

    /// The number of messages accepted and not yet received; a snapshot.
    std::size_t size() const noexcept { return state_->size(); }
    bool is_open() const noexcept { return !state_->closed(); } ///< False once the mailbox is closed.
    executor_type get_executor() const noexcept { return state_->executor(); }

    /// For operations built on a mailbox.
    const std::shared_ptr<detail::mailbox_state<M>>& state() const noexcept { return state_; }

protected:
    /// The sending side of this mailbox.
    explicit mailbox_ref(std::shared_ptr<detail::mailbox_state<M>> state) noexcept : state_(std::move(state)) {}

    std::shared_ptr<detail::mailbox_state<M>> state_; ///< Shared by all copies.
};

/// Bounded queue of messages: many senders, one receiver at a time, awaitable on both sides.
///
/// The owner and receiving side. Its destructor closes the mailbox: waiting operations complete with errc::closed, and
/// messages that were not received are destroyed. When the execution context is destroyed first, it destroys waiting
/// operations without calling their handlers.
///
/// Exceptions: create() and the initiating calls throw std::bad_alloc when there is no memory; no message is lost then.
/// Other functions do not throw. With handlers on executors other than those of an io_context or a thread_pool, all
/// functions that receive, and close(), also throw std::bad_alloc when there is no memory for a completion; destroy the
/// mailbox then.
/// Thread safety: the sending side and close() from any thread; receiving from one thread at a time.
template <message M>
class mailbox : public mailbox_ref<M> {
public:
    static constexpr std::size_t max_capacity = std::size_t{1} << 30; ///< The largest capacity.

    /// Errors: errc::invalid_option when the capacity is zero or above max_capacity.
    static result<mailbox> create(asio::any_io_executor ex, std::size_t capacity)
    {
        if (capacity == 0 || capacity > max_capacity)
            return detail::op_error(errc::invalid_option, "mailbox",
                                    {"capacity is ", capacity, "; it must be from 1 to ", max_capacity});
        return mailbox(std::make_shared<detail::mailbox_state<M>>(std::move(ex), capacity));
    }

    mailbox(mailbox&& other) noexcept : mailbox_ref<M>(std::move(other.state_)) {}

    mailbox& operator=(mailbox&& other) noexcept
    {
        auto old = std::exchange(this->state_, std::move(other.state_));
        if (old && old != this->state_)
            old->abandon();
        return *this;
    }

    ~mailbox()
    {
        if (this->state_)
            this->state_->abandon();
    }

    /// The copyable sending side.
    mailbox_ref<M> ref() const noexcept { return *this; }

    /// Receives without waiting.
    ///
    /// Errors: would_block when the mailbox is empty, errc::closed when it is empty and closed, errc::already_waiting
    /// while an asynchronous receive is pending.
    result<M> try_receive() { return this->state_->try_receive(); }

    /// Receives one message.
    ///
    /// Completion signature: void(error_code, M).
    /// Completes when: a message is available, or the mailbox is closed and all accepted messages have been received.
    /// Executor: the handler's, or else the mailbox's.
    /// Cancellation: total, partial, terminal; a cancelled receive takes no message.
    /// Errors: errc::closed, errc::already_waiting, operation_aborted; the message is then default-constructed.
    /// Exceptions: also those of the default constructor of M; nothing is received then.
    template <asio::completion_token_for<void(error_code, M)> Token = default_token>
        requires std::default_initializable<M>
    auto async_receive(Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, M)>(detail::initiate_receive<M>(this->state_), token);
    }

    /// Receives the available messages, at least one and at most `max` (zero counts as one).
    ///
    /// Appends to `out` and completes with the number of messages. M need not be default-constructible.
    /// Lifetimes: `out` must stay valid until completion; it is accessed on the handler's executor only.
    /// Errors: those of async_receive, and no_memory when `out` cannot grow; no message is taken then. Otherwise as
    /// async_receive.
    ///
    /// Completion signature: void(error_code, std::size_t).
    template <asio::completion_token_for<void(error_code, std::size_t)> Token = default_token>
    auto async_receive_batch(std::vector<M>& out, std::size_t max, Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, std::size_t)>(
            detail::initiate_receive_batch<M>(this->state_), token, &out, max);
    }

    /// Refuses further messages. Accepted messages are still delivered; waiting senders complete with errc::closed.
    void close() { this->state_->close(); }

private:
    explicit mailbox(std::shared_ptr<detail::mailbox_state<M>> state) noexcept : mailbox_ref<M>(std::move(state)) {}
};

} // namespace coaccel

#endif
