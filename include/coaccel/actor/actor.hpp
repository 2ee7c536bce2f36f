#ifndef COACCEL_ACTOR_ACTOR_HPP
#define COACCEL_ACTOR_ACTOR_HPP

#include <coaccel/actor/actor_stats.hpp>
#include <coaccel/actor/detail/actor_state.hpp>
#include <coaccel/actor/mailbox.hpp>
#include <coaccel/actor/supervised.hpp>
#include <coaccel/core/result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace coaccel {

/// A function that makes a new behaviour: an object that is callable with a message and returns awaitable<error_code>.
template <class F, class M>
concept behaviour_factory = std::copy_constructible<F> && std::invocable<F&> &&
                            std::is_invocable_r_v<asio::awaitable<error_code>, std::invoke_result_t<F&>&, M>;

/// A behaviour that handles the messages of one mailbox, one at a time, on a strand over the user's executor. A
/// supervisor starts and restarts it.
///
/// The mailbox and the address `ref()` survive restarts: each start calls the factory for a new behaviour, which
/// continues with the next message. A behaviour fails when it returns an error or throws (errc::actor_failed with the
/// what() of the exception). The message being handled is then destroyed; an unanswered reply_to inside it answers
/// errc::actor_failed with the message of the error.
///
/// stop() cancels (terminal) the operation that the behaviour awaits. Closing the mailbox ends the actor after the last
/// accepted message.
///
/// An actor that its supervisor does not start again has ended: its mailbox refuses messages with errc::actor_stopped,
/// and the requests in it are answered with that error. When the supervisor is run again, the mailbox opens again.
///
/// Exceptions: every function except ref() throws std::bad_alloc when there is no memory. start() and stop() then have
/// no effect; retire() may then have closed and emptied the mailbox.
/// Lifetimes: must be destroyed before its execution context, because it holds a strand of that context. A supervisor
/// that holds it must therefore be destroyed before too. The address `ref()` may outlive both.
template <message M>
class actor final : public supervised {
public:
    using executor_type = asio::any_io_executor;

    /// Errors: errc::invalid_option when `capacity` is not a valid mailbox capacity.
    /// Exceptions: also those of the move constructor of `factory`.
    template <behaviour_factory<M> Factory>
    static result<std::shared_ptr<actor>> create(executor_type ex, std::size_t capacity, Factory factory)
    {
        typename state_type::strand_type strand(std::move(ex));
        BOOST_OUTCOME_TRY(auto inbound, mailbox<M>::create(strand, capacity));
        BOOST_OUTCOME_TRY(auto verdicts, mailbox<char>::create(strand, 1));
        return std::shared_ptr<actor>(new actor(std::make_shared<state_type>(
            std::move(strand), std::move(inbound), std::move(verdicts), erase(std::move(factory)))));
    }

    actor(const actor&) = delete;
    actor& operator=(const actor&) = delete;

    /// The address to which messages are sent. Does not throw.
    mailbox_ref<M> ref() const { return state_->inbound().ref(); }

    /// What it has done so far. Does not throw, and may be called from any thread.
    actor_stats stats() const noexcept { return state_->stats(); }

    /// Refuses further messages; the actor ends after the last accepted one.
    void close() { state_->inbound().close(); }

    void start(child_listener listener) override { state_->start(std::move(listener)); }
    void resume() override { state_->resume(); }
    void stop() override { state_->stop(); }
    void retire(error_code reason) override { state_->retire(reason); }

private:
    using state_type = detail::actor_state<M>;

    explicit actor(std::shared_ptr<state_type> state) noexcept : state_(std::move(state)) {}

    template <class Factory>
    static typename state_type::factory_type erase(Factory factory)
    {
        return [factory = std::move(factory)]() mutable -> std::unique_ptr<detail::behaviour<M>> {
            using behaviour_type = std::decay_t<std::invoke_result_t<Factory&>>;
            return std::make_unique<detail::callable_behaviour<M, behaviour_type>>(factory());
        };
    }

    std::shared_ptr<state_type> state_;
};

} // namespace coaccel

#endif
