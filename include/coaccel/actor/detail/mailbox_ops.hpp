#ifndef COACCEL_ACTOR_DETAIL_MAILBOX_OPS_HPP
#define COACCEL_ACTOR_DETAIL_MAILBOX_OPS_HPP

#include <coaccel/actor/detail/mailbox_state.hpp>
#include <coaccel/core/detail/handler_op.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace coaccel::detail {

template <class M>
class receive_waiter : public async_op_base {
public:
    explicit receive_waiter(std::shared_ptr<mailbox_state<M>> state) : message_(std::in_place), state_(std::move(state))
    {}

    std::tuple<error_code, M> take()
    {
        if (!ec)
            ec = state_->deliver(1, [this](M&& m) { message_.emplace(std::move(m)); });
        return std::tuple<error_code, M>(ec, std::move(*message_));
    }

protected:
    ~receive_waiter() = default;

private:
    // The value the handler receives with an error. Constructed when the receive starts: if the constructor throws,
    // that call fails and no message is lost.
    std::optional<M> message_;
    std::shared_ptr<mailbox_state<M>> state_;
};

template <class M>
class batch_waiter : public async_op_base {
public:
    batch_waiter(std::shared_ptr<mailbox_state<M>> state, std::vector<M>& out, std::size_t max) noexcept
        : state_(std::move(state)), out_(&out), max_(max)
    {}

    std::tuple<error_code, std::size_t> take()
    {
        if (ec)
            return {ec, 0};
        const std::size_t before = out_->size();
        // Messages that arrive between this line and the delivery wait for the next batch: no allocation under the
        // lock.
        const std::size_t room = std::max<std::size_t>(1, std::min(max_, state_->size()));
        try {
            out_->reserve(before + room);
        } catch (...) {
            state_->receive_nothing();
            return {asio::error::no_memory, 0};
        }
        ec = state_->deliver(room, [this](M&& m) { out_->push_back(std::move(m)); });
        return {ec, out_->size() - before};
    }

protected:
    ~batch_waiter() = default;

private:
    std::shared_ptr<mailbox_state<M>> state_;
    std::vector<M>* out_;
    std::size_t max_;
};

template <class M>
class mailbox_initiation {
public:
    using executor_type = asio::any_io_executor;

    explicit mailbox_initiation(std::shared_ptr<mailbox_state<M>> state) noexcept : state_(std::move(state)) {}

    executor_type get_executor() const noexcept { return state_->executor(); }

protected:
    template <class Base, class Handler, class... Args>
    auto* make(Handler&& handler, Args&&... args) const
    {
        using op_type = handler_op<Base, std::decay_t<Handler>, executor_type>;
        auto* op = op_type::create(std::forward<Handler>(handler), state_->executor(), std::forward<Args>(args)...);
        using waiting_as = std::conditional_t<std::is_base_of_v<send_waiter<M>, Base>, send_waiter<M>, async_op_base>;
        op->on_cancel(canceller<mailbox_state<M>, waiting_as>{state_, op});
        return op;
    }

    std::shared_ptr<mailbox_state<M>> state_;
};

template <class M>
struct initiate_send : mailbox_initiation<M> {
    using mailbox_initiation<M>::mailbox_initiation;

    template <class Handler>
    void operator()(Handler&& handler, M message) const
    {
        this->state_->send(*this->template make<send_waiter<M>>(std::forward<Handler>(handler), std::move(message)));
    }
};

template <class M>
struct initiate_receive : mailbox_initiation<M> {
    using mailbox_initiation<M>::mailbox_initiation;

    template <class Handler>
    void operator()(Handler&& handler) const
    {
        this->state_->receive(*this->template make<receive_waiter<M>>(std::forward<Handler>(handler), this->state_));
    }
};

template <class M>
struct initiate_receive_batch : mailbox_initiation<M> {
    using mailbox_initiation<M>::mailbox_initiation;

    template <class Handler>
    void operator()(Handler&& handler, std::vector<M>* out, std::size_t max) const
    {
        this->state_->receive(
            *this->template make<batch_waiter<M>>(std::forward<Handler>(handler), this->state_, *out, max));
    }
};

} // namespace coaccel::detail

#endif
