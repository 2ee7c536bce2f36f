#ifndef COACCEL_ACTOR_REPLY_TO_HPP
#define COACCEL_ACTOR_REPLY_TO_HPP

#include <coaccel/actor/detail/reply_state.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace coaccel {

/// The requirements on the type of an answer: void, or a type whose move constructor does not throw, so that no answer
/// is lost on its way. It is default-constructible, because the handler of a request receives a value with an error
/// too.
template <class R>
concept reply_type =
    std::is_void_v<R> || (std::is_object_v<R> && std::default_initializable<R> &&
                          std::is_nothrow_move_constructible_v<R> && std::is_nothrow_destructible_v<R>);

/// The obligation to answer one request, carried inside a message. Move-only.
///
/// Destroying it unanswered completes the request with errc::no_reply. In an actor the error is errc::actor_failed when
/// the behaviour fails meanwhile, and errc::actor_stopped when the actor ends. An answer after the deadline or the
/// cancellation of the request is dropped.
///
/// Exceptions: no function throws if the handler of the request runs on an io_context or a thread_pool. On another
/// executor, such as a strand, send() and fail() throw std::bad_alloc when there is no memory for the completion, and
/// the destructor of an unanswered reply_to then calls std::terminate.
/// Thread safety: distinct objects from any thread.
template <reply_type R>
class reply_to {
public:
    /// Empty: answers no request. Allows messages to be default-constructible.
    reply_to() noexcept = default;

    /// Made by async_ask.
    explicit reply_to(std::shared_ptr<detail::reply_state<R>> state) noexcept : state_(std::move(state)) {}

    reply_to(reply_to&&) noexcept = default;

    reply_to& operator=(reply_to&& other) noexcept
    {
        reply_to old(std::exchange(state_, std::move(other.state_)));
        return *this;
    }

    ~reply_to()
    {
        if (state_)
            state_->drop();
    }

    /// Answers. Does nothing when already answered.
    ///
    /// Exceptions: also those of the conversion to R; the request is then still unanswered.
    template <class V = R>
        requires(!std::is_void_v<R> && std::convertible_to<V, R>)
    void send(V&& value)
    {
        // First, because a conversion that throws leaves the request unanswered.
        R answer(std::forward<V>(value));
        if (auto state = std::exchange(state_, nullptr))
            state->settle_with(std::move(answer));
    }

    /// Answers a request whose reply type is void.
    void send()
        requires std::is_void_v<R>
    {
        if (auto state = std::exchange(state_, nullptr))
            state->settle_with({});
    }

    /// Answers with an error. Does nothing when already answered.
    void fail(error_code ec)
    {
        if (auto state = std::exchange(state_, nullptr))
            state->settle(ec);
    }

    /// True while the request still waits for this answer; a hint that allows skipping unneeded work.
    bool wanted() const { return state_ && state_->wanted(); }

private:
    std::shared_ptr<detail::reply_state<R>> state_;
};

} // namespace coaccel

#endif
