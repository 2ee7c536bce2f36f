#ifndef COACCEL_CONTEXT_SYNC_WAITER_HPP
#define COACCEL_CONTEXT_SYNC_WAITER_HPP

#include "context/context.hpp"

#include <coaccel/core/backend.hpp>

#include <functional>
#include <memory>
#include <thread>

namespace coaccel::detail {

/// A thread that blocks where the executor may not; started on first use.
class COACCEL_DECL sync_waiter {
public:
    sync_waiter();
    ~sync_waiter() { (void)stop(); }

    /// Blocks in `block` on the thread, then notifies. One at a time. Fails when there can be no thread.
    error_code wait_for(std::function<void()> block, notification done);

    /// Whether the thread is between wait_for and its notification.
    bool busy() const noexcept;

    /// Waits for the thread to end; what it blocks on must have been aborted. False: it did not end in time. It was
    /// left where it is, will not notify, and what it blocks on must stay for good.
    [[nodiscard]] bool stop(clock::time_point until = clock::time_point::max()) noexcept;

private:
    struct state;

    static void run(state& s);

    std::shared_ptr<state> state_;
    std::thread thread_;
};

} // namespace coaccel::detail

#endif
