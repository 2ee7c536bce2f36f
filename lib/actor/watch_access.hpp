#ifndef COACCEL_ACTOR_WATCH_ACCESS_HPP
#define COACCEL_ACTOR_WATCH_ACCESS_HPP

#include <coaccel/actor/watch.hpp>

namespace coaccel::detail {

struct watch_access {
    /// Posts the operation, once, when there is a value that the subscriber has not seen, or the source is closed.
    /// Unlike async_changed, this keeps no executor running.
    template <class T>
    static void wait(watch<T>& subscriber, async_op_base& op)
    {
        subscriber.state_->wait(op, *subscriber.cursor_);
    }

    /// Posts the operation with operation_aborted if it still waits; otherwise does nothing. Preconditions: the
    /// operation exists until this returns, and waits on the source of this subscriber, if at all.
    template <class T>
    static void cancel(const watch<T>& subscriber, async_op_base& op)
    {
        subscriber.state_->cancel(op);
    }

    /// Whether an operation waits for a change, of this subscriber or of another one of the same source.
    template <class T>
    static bool has_waiters(const watch<T>& subscriber)
    {
        return subscriber.state_->has_waiters();
    }
};

} // namespace coaccel::detail

#endif
