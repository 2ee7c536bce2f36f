#ifndef COACCEL_ACTOR_DETAIL_DROPPED_REPLIES_HPP
#define COACCEL_ACTOR_DETAIL_DROPPED_REPLIES_HPP

#include <coaccel/core/error.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace coaccel::detail {

/// A reply that was dropped, seen without its type.
class dropped_reply {
public:
    virtual void answer(error_code ec) = 0;

protected:
    ~dropped_reply() = default;
};

/// While one lives, replies dropped on this thread are answered with its reason instead of errc::no_reply.
/// Must not live across a suspension of a coroutine.
class COACCEL_DECL drop_scope {
public:
    explicit drop_scope(const error_code& reason) noexcept;
    drop_scope(const drop_scope&) = delete;
    drop_scope& operator=(const drop_scope&) = delete;
    ~drop_scope();

    /// Null: no scope on this thread.
    static const error_code* current() noexcept;

private:
    error_code reason_;
    const drop_scope* outer_;
};

/// Holds back the replies that an actor's behaviour drops while it handles a message.
///
/// A message is destroyed before the error of its behaviour is known: its coroutine frame goes first. The two lie
/// within one turn of the executor, so what is dropped in a turn is answered at the end of that turn at the latest.
///
/// Thread safety: every function from any thread; a reply may be dropped anywhere.
class COACCEL_DECL dropped_replies {
public:
    dropped_replies() = default;
    dropped_replies(const dropped_replies&) = delete;
    dropped_replies& operator=(const dropped_replies&) = delete;

    /// A message is about to be handled.
    void begin() noexcept;

    /// False when no message is being handled, or memory is short: the reply is to be answered at once.
    bool hold(std::shared_ptr<dropped_reply> reply) noexcept;

    /// Answers what is held, after the turn in which it was dropped.
    void end_turn();

    /// The message was handled. Answers what is held with `failure`, or with errc::no_reply when there was none.
    void end(error_code failure);

private:
    void answer(error_code ec);

    std::mutex mutex_;
    std::vector<std::shared_ptr<dropped_reply>> held_;
    // Read without the mutex, so that a message whose reply is sent costs none.
    std::atomic<bool> handling_{false};
    std::atomic<bool> holding_{false};
};

/// What a behaviour or its factory threw, as an error: errc::actor_failed with its what().
COACCEL_DECL error_code thrown_failure(const std::exception_ptr& thrown) noexcept;

/// What those are told whose message an actor held when it failed: errc::actor_failed with the message of `failure`.
COACCEL_DECL error_code failed_in_hand(const error_code& failure) noexcept;

/// What those are told who wait for an actor that has ended: errc::actor_stopped, with the message of `reason` if any.
COACCEL_DECL error_code stopped_because(const error_code& reason) noexcept;

} // namespace coaccel::detail

#endif
