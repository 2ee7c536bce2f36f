#ifndef COACCEL_ACTOR_SUPERVISION_HPP
#define COACCEL_ACTOR_SUPERVISION_HPP

#include <coaccel/actor/restart_budget.hpp>
#include <coaccel/actor/restart_policy.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace coaccel {

/// The next actions of a supervisor, in the order of the members. Children are identified by their index.
struct supervision_step {
    std::vector<std::size_t> stop;   ///< Children to stop.
    std::vector<std::size_t> start;  ///< Children to start.
    std::vector<std::size_t> resume; ///< Children that continue with their next message.
    /// Children that have ended and that this supervisor will not start again.
    std::vector<std::size_t> retire;
    /// The failure that this supervisor passes to its own supervisor.
    std::optional<error_code> escalate;
    /// The number of restarts that the budget counts, with the one that this step begins; zero if it begins none.
    std::size_t restarts = 0;
    /// Whether the failure is escalated because the restart budget is used up.
    bool used_up = false;
    /// True when every child has ended and none will be started again.
    bool finished = false;
};

/// The state machine of a supervisor, without clock, random numbers or threads.
///
/// A failed child is suspended until it is resumed or stopped. A restart stops the affected children one by one, last
/// first, waits for the back-off, then starts them in order. The restart budget is per child for one_for_one, shared
/// otherwise. A child that ends by itself is not started again.
///
/// Exceptions: the constructor and the functions that return a supervision_step throw std::bad_alloc when there is no
/// memory. The event may then be recorded although its step is lost: destroy the object. Other functions do not throw.
class COACCEL_DECL supervision {
public:
    using time_point = restart_budget::time_point; ///< A time of the steady clock.

    /// Preconditions: `policy` is valid.
    supervision(const restart_policy& policy, std::size_t children);

    [[nodiscard]] supervision_step start(); ///< Starts every child.
    /// A child has failed with `ec` and is suspended.
    [[nodiscard]] supervision_step child_failed(std::size_t child, const error_code& ec, time_point now, double random);
    /// A child has ended, by itself or because it was stopped.
    [[nodiscard]] supervision_step child_stopped(std::size_t child, time_point now);

    /// The time returned by next_due() has been reached.
    [[nodiscard]] supervision_step timer(time_point now);

    /// Resumes the children whose failures were escalated.
    [[nodiscard]] supervision_step resume();

    /// Stops every child, last first.
    [[nodiscard]] supervision_step stop();

    /// The time at which timer() must be called, if any.
    std::optional<time_point> next_due() const;

    bool finished() const noexcept; ///< Whether every child has ended and none will start.

private:
    enum class child_state { ended, running, failed, stopping, waiting };

    // A restart in progress. One per child for one_for_one, otherwise a single one, because the affected sets always
    // overlap.
    struct cycle {
        explicit cycle(const restart_policy& policy) : budget(policy) {}

        restart_budget budget;
        bool active = false;
        std::vector<std::size_t> members;
        restart_budget::duration delay{};
        std::optional<time_point> due;
    };

    std::size_t cycle_of(std::size_t child) const noexcept;
    void begin_restart(std::size_t child, restart_budget::duration delay);
    void advance(cycle& c, time_point now, supervision_step& step);
    bool stop_next(const std::vector<std::size_t>& members, supervision_step& step);
    void start_members(cycle& c, supervision_step& step);

    restart_policy policy_;
    std::vector<child_state> children_;
    std::vector<cycle> cycles_;
    std::vector<std::size_t> escalated_;
    // Children that will not start again once they have stopped.
    std::vector<bool> leaving_;
    bool stopping_ = false;
};

} // namespace coaccel

#endif
