#ifndef COACCEL_ACTOR_REPLY_TO_HPP
#define COACCEL_ACTOR_REPLY_TO_HPP

#include <coaccel/actor/detail/reply_state.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace coaccel {

/// What an answer can be: nothing, or a value whose move constructor does not throw, so that no answer is lost on its
/// way. Default-constructible, for the asker gets one with an error too.
template <class R>
concept reply_type =
    std::is_void_v<R> || (std::is_object_v<R> && std::default_initializable<R> &&
                          std::is_nothrow_move_constructible_v<R> && std::is_nothrow_destructible_v<R>);

/// The obligation to answer one request, carried inside a message. Move-only.
///
/// Destroying it unanswered completes the asker with errc::no_reply; below an actor with errc::actor_failed when the
/// behaviour fails meanwhile, and with errc::actor_stopped when the actor ends. An answer that comes too late, after
/// the asker's deadline or cancellation, is dropped.
///
/// Thread safety: distinct objects from any thread.
template <reply_type R>
class reply_to {
public:
    /// Owes nothing to nobody; so that messages can be default-constructible.
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
    template <class V = R>
        requires(!std::is_void_v<R> && std::convertible_to<V, R>)
    void send(V&& value)
    {
        // First, for a conversion that throws leaves the request unanswered.
        R answer(std::forward<V>(value));
        if (auto state = std::exchange(state_, nullptr))
            state->settle_with(std::move(answer));
    }

    /// Answers a request whose reply is nothing.
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

    /// True while somebody waits for this answer; a hint to skip work nobody wants.
    bool wanted() const { return state_ && state_->wanted(); }

private:
    std::shared_ptr<detail::reply_state<R>> state_;
};

} // namespace coaccel

#endif
