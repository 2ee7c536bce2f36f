#ifndef COACCEL_WORKER_PARENT_REPLY_POLLING_HPP
#define COACCEL_WORKER_PARENT_REPLY_POLLING_HPP

#include "context/completion/wait_policy.hpp"
#include "worker/parent/reply_estimator.hpp"

namespace coaccel::worker {

/// Decides after each turn whether the context of a worker polls on for replies or sleeps until the doorbell rings. It
/// has no clock; the context passes the times.
class COACCEL_DECL reply_polling {
public:
    using time_point = detail::clock::time_point;
    using duration = detail::clock::duration;

    /// `spin`: how long the worker's options allow to poll after the last progress. Zero: never, unless the completion
    /// strategy of the context polls.
    reply_polling(context_options options, std::chrono::nanoseconds spin) noexcept;

    bool spins() const noexcept { return spin_ > duration::zero(); }

    /// A request was submitted to the context.
    void submitted(time_point now) noexcept { last_moved_ = now; }

    /// A request was sent to the worker while no other was in flight.
    void sent_alone(std::uint64_t id, const detail::request& r) noexcept { estimator_.sent(id, r); }

    /// The reply to a request has arrived.
    void replied(std::uint64_t id, time_point now) noexcept;

    /// A turn begins. After a long gap the measured completion times are not accurate.
    void begin_turn(time_point now) noexcept;

    /// The turn ends, and nothing is left to wait for.
    void idle(time_point now) noexcept;

    struct decision {
        bool poll = false;
        /// The context slept before: it must withdraw the announcement that it sleeps.
        bool awake = false;
        /// How long the context has polled without progress.
        duration looked_for{};
        /// If it sleeps: when to look even if the doorbell does not ring.
        time_point look_at = time_point::max();
    };

    /// The turn ends while replies are awaited. `moved`: it made progress.
    decision end_turn(bool moved, time_point now) noexcept;

private:
    duration spin_;
    detail::wait_policy rule_;
    reply_estimator estimator_;
    /// The context has polled without a gap, so the measured completion times are accurate.
    bool looking_ = true;
    time_point last_look_{};
    time_point last_moved_{};
    time_point looking_since_{};
};

} // namespace coaccel::worker

#endif
