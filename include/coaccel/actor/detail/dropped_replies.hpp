#ifndef COACCEL_ACTOR_DETAIL_DROPPED_REPLIES_HPP
#define COACCEL_ACTOR_DETAIL_DROPPED_REPLIES_HPP

#include <coaccel/core/error.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace coaccel::detail {

/// A reply whose reply_to was destroyed unanswered, without its type.
class dropped_reply {
public:
    virtual void answer(error_code ec) = 0;

protected:
    ~dropped_reply() = default;
};

/// While an object of this class exists, replies dropped on its thread are answered with its reason instead of
/// errc::no_reply. Must not live across a suspension of a coroutine.
class COACCEL_DECL drop_scope {
public:
    explicit drop_scope(const error_code& reason) noexcept;
    drop_scope(const drop_scope&) = delete;
    drop_scope& operator=(const drop_scope&) = delete;
    ~drop_scope();

    /// Null when there is no scope on this thread.
    static const error_code* current() noexcept;

private:
    error_code reason_;
    const drop_scope* outer_;
};

/// Delays the answers to replies that an actor's behaviour drops while it handles a message.
///
/// The message is destroyed with the behaviour's coroutine frame, before the error of the behaviour is known. Both
/// happen in the same handler on the executor, so a held reply is answered right after that handler at the latest.
///
/// Thread safety: every function from any thread; any thread may drop a reply.
class COACCEL_DECL dropped_replies {
public:
    dropped_replies() = default;
    dropped_replies(const dropped_replies&) = delete;
    dropped_replies& operator=(const dropped_replies&) = delete;

    /// Called before a message is handled.
    void begin() noexcept;

    /// Returns false when no message is being handled or memory is short; the caller must then answer the reply at
    /// once.
    bool hold(std::shared_ptr<dropped_reply> reply) noexcept;

    /// Answers the held replies with errc::no_reply. Called after the handler in which they were dropped.
    void end_turn();

    /// Called after the message was handled. Answers the held replies with `failure`, or with errc::no_reply if there
    /// is none.
    void end(error_code failure);

private:
    void answer(error_code ec);

    std::mutex mutex_;
    std::vector<std::shared_ptr<dropped_reply>> held_;
    // Read without the mutex, so that a message that is answered takes no lock.
    std::atomic<bool> handling_{false};
    std::atomic<bool> holding_{false};
};

/// Turns an exception of a behaviour or its factory into errc::actor_failed with its what().
COACCEL_DECL error_code thrown_failure(const std::exception_ptr& thrown) noexcept;

/// The error for requests that an actor was handling or holding when it failed: errc::actor_failed with the message of
/// `failure`.
COACCEL_DECL error_code failed_in_hand(const error_code& failure) noexcept;

/// The error for requests to an actor that has ended: errc::actor_stopped, with the message of `reason` if there is
/// one.
COACCEL_DECL error_code stopped_because(const error_code& reason) noexcept;

} // namespace coaccel::detail

#endif
