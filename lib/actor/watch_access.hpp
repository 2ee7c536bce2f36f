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
};

} // namespace coaccel::detail

#endif
