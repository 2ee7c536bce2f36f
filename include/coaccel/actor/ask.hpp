#ifndef COACCEL_ACTOR_ASK_HPP
#define COACCEL_ACTOR_ASK_HPP

#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/reply_to.hpp>
#include <coaccel/core/as_result.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace coaccel {

/// Completion signature of async_ask: void(error_code, R), or void(error_code) when R is void.
template <class R>
using ask_signature = typename std::conditional_t<std::is_void_v<R>, std::type_identity<void(error_code)>,
                                                  std::type_identity<void(error_code, detail::reply_value<R>)>>::type;

namespace detail {

inline std::chrono::steady_clock::time_point deadline_after(std::chrono::steady_clock::duration timeout)
{
    const auto now = std::chrono::steady_clock::now();
    const auto forever = std::chrono::steady_clock::time_point::max();
    return timeout > forever - now ? forever : now + timeout;
}

/// The reply state of a request, which is also the operation that waits for room in the mailbox: one object, one
/// lifetime.
template <class R, class M>
class ask_state final : public reply_state<R>, private send_waiter<M> {
public:
    explicit ask_state(std::shared_ptr<mailbox_state<M>> to) noexcept : to_(std::move(to)) {}

    ~ask_state() { this->withdraw(); }

    template <class Make>
    void start(reply_waiter<R>& op, std::chrono::steady_clock::time_point deadline, Make& make)
    {
        if (deadline <= std::chrono::steady_clock::now()) {
            op.ec = errc::deadline_exceeded;
            return op.post();
        }
        if (!this->arm(op, to_->executor(), deadline))
            return;
        try {
            this->message.emplace(make(reply_to<R>(this->shared_from_this())));
        } catch (...) {
            // The exception may have destroyed the reply_to, which then has already answered no_reply.
            return this->settle(errc::no_reply);
        }
        self_ = this->shared_from_this();
        to_->send(*this);
        // The deadline may have passed, or a cancellation arrived, before the request began to wait for room.
        if (!this->wanted())
            withdraw_request();
    }

private:
    struct end_of_turn {
        std::shared_ptr<mailbox_state<M>> box;

        void operator()() const { box->dropped()->end_turn(); }
    };

    bool hold_back() override
    {
        if (!to_->dropped() || !to_->dropped()->hold(this->shared_from_this()))
            return false;
        try {
            asio::post(to_->executor(), end_of_turn{to_});
        } catch (...) {
            // No memory for the post: the reply is answered when the message has been handled.
        }
        return true;
    }

    void withdraw_request() override { to_->cancel(static_cast<send_waiter<M>&>(*this)); }

    void post() override
    {
        auto self = std::move(self_);
        auto message = std::exchange(this->message, std::nullopt);
        if (this->ec)
            this->settle(this->ec);
    }

    void destroy() noexcept override
    {
        auto self = std::move(self_);
        auto message = std::exchange(this->message, std::nullopt);
    }

    std::shared_ptr<mailbox_state<M>> to_;
    // Keeps this object alive from send() to post() or destroy(), while the mailbox refers to it.
    std::shared_ptr<reply_state<R>> self_;
};

template <class R, class M>
class initiate_ask {
public:
    using executor_type = asio::any_io_executor;

    explicit initiate_ask(std::shared_ptr<mailbox_state<M>> to) noexcept : to_(std::move(to)) {}

    executor_type get_executor() const noexcept { return to_->executor(); }

    template <class Handler, class Make>
    void operator()(Handler&& handler, Make make, std::chrono::steady_clock::time_point deadline) const
    {
        using op_type = handler_op<reply_waiter<R>, std::decay_t<Handler>, executor_type>;
        auto state = std::make_shared<ask_state<R, M>>(to_);
        auto* op = op_type::create(std::forward<Handler>(handler), to_->executor());
        op->on_cancel(canceller<reply_state<R>, async_op_base>{state, op});
        state->start(*op, deadline, make);
    }

private:
    std::shared_ptr<mailbox_state<M>> to_;
};

} // namespace detail

/// Sends a request and waits for its answer.
///
/// `make` receives the reply_to<R> and returns the message that carries it. The deadline also covers the wait for room
/// in a full mailbox; time_point::max() means no deadline.
///
/// Completion signature: void(error_code, R), or void(error_code) when R is void.
/// Completes when: the reply_to is answered or destroyed, the deadline passes, or the mailbox is closed.
/// Executor: the handler's, or else the mailbox's.
/// Cancellation: total, partial, terminal. A request already in the mailbox stays there; its answer is dropped.
/// Errors: errc::deadline_exceeded (at once, without sending a message, when the deadline is in the past);
/// errc::no_reply, also when `make` throws; errc::closed; operation_aborted; any error passed to reply_to::fail. From
/// an actor also errc::actor_failed and errc::actor_stopped, whose messages contain the error that the behaviour
/// returned or threw.
/// Exceptions: the initiating call throws std::bad_alloc when there is no memory for the operation, and what moving
/// `make` and the default constructor of R throw; nothing has been sent then. It also throws what mailbox_ref::try_send
/// throws.
template <reply_type R, message M, std::invocable<reply_to<R>> Make,
          asio::completion_token_for<ask_signature<R>> Token = default_token>
    requires std::convertible_to<std::invoke_result_t<Make&, reply_to<R>>, M>
auto async_ask(const mailbox_ref<M>& to, Make make, std::chrono::steady_clock::time_point deadline, Token&& token = {})
{
    return asio::async_initiate<Token, ask_signature<R>>(detail::initiate_ask<R, M>(to.state()), token, std::move(make),
                                                         deadline);
}

/// async_ask with a timeout instead of a deadline. The timeout starts at this call.
template <reply_type R, message M, std::invocable<reply_to<R>> Make,
          asio::completion_token_for<ask_signature<R>> Token = default_token>
    requires std::convertible_to<std::invoke_result_t<Make&, reply_to<R>>, M>
auto async_ask(const mailbox_ref<M>& to, Make make, std::chrono::steady_clock::duration timeout, Token&& token = {})
{
    return async_ask<R>(to, std::move(make), detail::deadline_after(timeout), std::forward<Token>(token));
}

} // namespace coaccel

#endif
