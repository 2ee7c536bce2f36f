#ifndef COACCEL_ACTOR_CHILD_HPP
#define COACCEL_ACTOR_CHILD_HPP

#include <coaccel/core/error.hpp>

#include <functional>

namespace coaccel {

enum class child_event {
    /// The child has suspended itself because of an error and waits for resume() or stop().
    failed,
    /// The child has ended, by itself or as asked. The last event of an incarnation.
    stopped,
};

/// Tells the supervisor. May be called from any thread, inside start(), resume() and stop() too.
using child_listener = std::function<void(child_event, error_code)>;

/// What a supervisor supervises. An incarnation goes from start() to its `stopped` event.
///
/// Thread safety: the supervisor calls one function at a time, but not always from the same thread.
class child {
public:
    virtual ~child() = default;

    /// Begins a fresh incarnation, which reports to `listener`. Must return soon.
    virtual void start(child_listener listener) = 0;

    /// Goes on after a failure, with the same incarnation.
    virtual void resume() = 0;

    /// Asks the incarnation, failed or not, to end. May come when it has just ended; nothing is to be done then.
    virtual void stop() = 0;

    /// No incarnation follows, as far as the supervisor can tell: whoever waits for this child is to be told. Comes
    /// after the `stopped` event, or for a child that was never started; a later start() revives it. `reason` is the
    /// failure that led to it, if any.
    virtual void retire(error_code reason) { static_cast<void>(reason); }
};

} // namespace coaccel

#endif
