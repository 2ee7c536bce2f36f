#ifndef COACCEL_WORKER_STANDBYS_HPP
#define COACCEL_WORKER_STANDBYS_HPP

#include "worker/worker_link.hpp"

#include <chrono>
#include <functional>
#include <memory>

namespace coaccel::worker {

/// Workers that are kept ready. When one ends, another is started in the background.
///
/// There is one try for each that ends, and no more than one in a `pause`. One that ended before it was ready, or could
/// not be started, is left for the next top_up(): a second one would fare no better.
///
/// Thread safety: one call at a time.
class COACCEL_DECL standbys {
public:
    using link_ptr = std::unique_ptr<worker_link>;
    /// Called in the background too.
    using starter = std::function<result<link_ptr>()>;

    explicit standbys(int wanted, std::chrono::nanoseconds pause = std::chrono::seconds(1));
    standbys(const standbys&) = delete;
    standbys& operator=(const standbys&) = delete;
    /// Blocks until the processes have ended, or have had the time to.
    ~standbys();

    /// Whether there is one, ready or not. From any thread; does not block.
    bool any() const;

    /// The oldest that is ready, or else the oldest, which may not be, or have ended; null when there is none.
    link_ptr take();

    /// Starts those that are missing, until one cannot be, and says how to start those that follow.
    void top_up(starter start);

    /// Ends all of them, blocking; none is started until the next top_up().
    void clear();

private:
    class state;

    std::unique_ptr<state> state_;
};

} // namespace coaccel::worker

#endif
