#ifndef COACCEL_WORKER_PARENT_STANDBY_POOL_HPP
#define COACCEL_WORKER_PARENT_STANDBY_POOL_HPP

#include "worker/parent/worker_link.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace coaccel::worker {

/// Workers that are kept ready. When one ends, a background thread starts another.
///
/// Each worker that ends is replaced by one attempt, with at most one attempt per `pause`. A worker that ended before
/// it was ready, or that could not be started, is not replaced before the next top_up(): another one would fail in the
/// same way.
///
/// Thread safety: one call at a time.
class COACCEL_DECL standby_pool {
public:
    using link_ptr = std::unique_ptr<worker_link>;
    /// Called on the background thread too.
    using starter = std::function<result<link_ptr>()>;

    explicit standby_pool(int wanted, std::chrono::nanoseconds pause = std::chrono::seconds(1));
    standby_pool(const standby_pool&) = delete;
    standby_pool& operator=(const standby_pool&) = delete;
    /// Blocks until the processes have ended, or until the time to wait for them is over.
    ~standby_pool();

    /// Whether there is a worker, ready or not. From any thread; does not block.
    bool any() const;

    /// Returns the oldest ready worker, otherwise the oldest, which may not be ready or may have ended; null if there
    /// is none.
    link_ptr take();

    /// Starts the missing workers until a start fails, and sets how later ones are started.
    void top_up(starter start);

    /// Ends all workers, blocking; none is started until the next top_up().
    void clear();

private:
    class state;

    std::unique_ptr<state> state_;
};

} // namespace coaccel::worker

#endif
