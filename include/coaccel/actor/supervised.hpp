#ifndef COACCEL_ACTOR_SUPERVISED_HPP
#define COACCEL_ACTOR_SUPERVISED_HPP

#include <coaccel/core/error.hpp>

#include <functional>

namespace coaccel {

/// What a child reports to its supervisor.
enum class child_event {
    /// The child has failed, is suspended, and waits for resume() or stop().
    failed,
    /// The child has ended, by itself or because of stop(). The last event of an incarnation.
    stopped,
};

/// Reports an event to the supervisor. May be called from any thread, also inside start(), resume() and stop().
using child_listener = std::function<void(child_event, error_code)>;

/// The interface of an object that a supervisor runs (a child), such as an actor. An incarnation lasts from start() to
/// its `stopped` event.
///
/// Exceptions: one that a function throws leaves the run() of the supervisor's executor, and the supervisor skips the
/// remaining children of the same step. Report failures through the listener instead.
/// Thread safety: the supervisor calls one function at a time, but not always from the same thread.
class supervised {
public:
    virtual ~supervised() = default;

    /// Starts a new incarnation, which reports to `listener`. Must return soon.
    virtual void start(child_listener listener) = 0;

    /// Continues after a failure, with the same incarnation.
    virtual void resume() = 0;

    /// Asks the incarnation, failed or not, to end. May be called just after it has ended, and must then do nothing.
    virtual void stop() = 0;

    /// Called when the supervisor will not start this child again, so that the child can answer waiting requests. The
    /// call comes after the `stopped` event, or for a child that was never started; a later start() reverts it.
    /// `reason` is the failure that caused it, if any.
    virtual void retire(error_code reason) { static_cast<void>(reason); }
};

} // namespace coaccel

#endif
