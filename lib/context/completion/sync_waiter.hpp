#ifndef COACCEL_CONTEXT_COMPLETION_SYNC_WAITER_HPP
#define COACCEL_CONTEXT_COMPLETION_SYNC_WAITER_HPP

#include "context/context.hpp"

#include <coaccel/core/backend.hpp>

#include <functional>
#include <memory>
#include <thread>

namespace coaccel::detail {

/// A thread for blocking waits that the executor must not make. Started on first use.
class COACCEL_DECL sync_waiter {
public:
    sync_waiter();
    ~sync_waiter() { (void)stop(); }

    /// Calls the blocking function `block` on the thread, then sends the notification. One call at a time. Fails if the
    /// thread cannot be started.
    error_code wait_for(std::function<void()> block, notification done);

    /// Whether the thread is between wait_for and its notification.
    bool busy() const noexcept;

    /// Waits for the thread to end; the operation it blocks on must have been aborted. False: it did not end in time.
    /// The thread is then detached and will not notify; the objects it blocks on must stay alive until the process
    /// ends.
    [[nodiscard]] bool stop(clock::time_point until = clock::time_point::max()) noexcept;

private:
    struct state;

    static void run(state& s);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

} // namespace coaccel::detail

#endif
