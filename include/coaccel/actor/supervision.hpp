#ifndef COACCEL_ACTOR_SUPERVISION_HPP
#define COACCEL_ACTOR_SUPERVISION_HPP

#include <coaccel/actor/restart_budget.hpp>
#include <coaccel/actor/restart_policy.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace coaccel {

/// What a supervisor is to do next, in this order. Children are named by their index.
struct supervision_step {
    std::vector<std::size_t> stop;   ///< Children to stop.
    std::vector<std::size_t> start;  ///< Children to start.
    std::vector<std::size_t> resume; ///< Children that go on with their next message.
    /// Children that have ended and are not started again while this supervisor runs.
    std::vector<std::size_t> retire;
    /// The failure the supervisor cannot decide about.
    std::optional<error_code> escalate;
    /// Every child has ended, and none will be started again.
    bool finished = false;
};

/// The decisions of a supervisor over its children, without clock, chance or threads.
///
/// A failed child is suspended until it is resumed or stopped. A restart stops the children it concerns one by one,
/// last first, waits for the back-off, then starts them in order. The budget is per child for one_for_one, shared
/// otherwise. A child that ends by itself is not started again.
class COACCEL_DECL supervision {
public:
    using time_point = restart_budget::time_point; ///< Of the steady clock.

    /// Preconditions: `policy` is valid.
    supervision(const restart_policy& policy, std::size_t children);

    [[nodiscard]] supervision_step start(); ///< Starts every child.
    /// A child has ended with an error.
    [[nodiscard]] supervision_step child_failed(std::size_t child, const error_code& ec, time_point now, double random);
    /// A child has ended, as it was told to or by itself.
    [[nodiscard]] supervision_step child_stopped(std::size_t child, time_point now);

    /// The time `next_due` named has come.
    [[nodiscard]] supervision_step timer(time_point now);

    /// The escalated failures are to be ignored.
    [[nodiscard]] supervision_step resume();

    /// Ends every child, last first.
    [[nodiscard]] supervision_step stop();

    /// When `timer` is to be called, if at all.
    std::optional<time_point> next_due() const;

    bool finished() const noexcept; ///< Whether every child has ended and none is to start.

private:
    enum class child_state { ended, running, failed, stopping, waiting };

    // A restart under way. One per child for one_for_one; else one, for the concerned sets always overlap.
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
    // Children that end for good once they have stopped.
    std::vector<bool> leaving_;
    bool stopping_ = false;
};

} // namespace coaccel

#endif
