#ifndef COACCEL_ACTOR_ACTOR_HPP
#define COACCEL_ACTOR_ACTOR_HPP

#include <coaccel/actor/child.hpp>
#include <coaccel/actor/detail/actor_state.hpp>
#include <coaccel/actor/mailbox.hpp>
#include <coaccel/core/result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace coaccel {

/// Makes a fresh behaviour: something callable with a message that returns awaitable<error_code>.
template <class F, class M>
concept behaviour_factory = std::copy_constructible<F> && std::invocable<F&> &&
                            std::is_invocable_r_v<asio::awaitable<error_code>, std::invoke_result_t<F&>&, M>;

/// A behaviour behind a mailbox, serialised by a strand of the user's executor; run by a supervisor.
///
/// The mailbox, and with it the address `ref()`, survives restarts: each start asks the factory for a fresh behaviour,
/// which goes on with the next message. A behaviour fails by returning an error, or by throwing (errc::actor_failed
/// with the what() of the exception). The message in hand is destroyed then: a reply_to inside it that has not been
/// answered answers errc::actor_failed, with the message of the error.
///
/// stop() cancels (terminal) what the behaviour awaits. Closing the mailbox ends the actor once everything is handled.
///
/// An actor that its supervisor does not start again is over: its mailbox refuses messages with errc::actor_stopped,
/// and requests in it are answered with that. When the supervisor is run again, the mailbox opens again.
///
/// Lifetimes: must not outlive its execution context.
template <message M>
class actor final : public child {
public:
    using executor_type = asio::any_io_executor;

    /// Errors: errc::invalid_option when the capacity is not one a mailbox can have.
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

    /// The address.
    mailbox_ref<M> ref() const { return state_->inbound().ref(); }

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
