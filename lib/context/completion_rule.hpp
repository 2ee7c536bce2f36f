#ifndef COACCEL_CONTEXT_COMPLETION_RULE_HPP
#define COACCEL_CONTEXT_COMPLETION_RULE_HPP

#include "context/context.hpp"

#include <algorithm>

namespace coaccel::detail {

/// Decides, after each look at the lanes, how the context learns of the next op that ends.
class COACCEL_DECL completion_rule {
public:
    enum class action : std::uint8_t {
        idle,
        /// Look again as soon as possible.
        poll,
        /// See to being told, and look again as soon as possible.
        arm_and_poll,
        /// See to being told.
        arm,
        /// Nothing, until it is time to look.
        wait,
    };

    /// The device has processors of its own.
    static constexpr unsigned own_processors = 0;

    /// `shared_cpus`: how many CPUs the executor shares with the work of the device. On a single one, polling keeps the
    /// work from running, so that `adaptive` is told of ends as `host_fn` is.
    explicit completion_rule(const context_options& options, unsigned shared_cpus = own_processors) noexcept
        : completion_(options.completion), spin_budget_(std::min<clock::duration>(options.spin_budget, endless))
    {
        if (completion_ == completion::adaptive && shared_cpus == 1 && spin_budget_ > clock::duration::zero())
            completion_ = completion::host_fn;
    }

    struct decision {
        action what = action::idle;
        /// When to look again, whether or not something fires by then.
        clock::time_point look_at = clock::time_point::max();
        /// How long to poll, if nothing ends.
        clock::time_point until = clock::time_point::max();
        /// It polls because the forecast says that the time has come.
        bool due = false;
    };

    /// When the next op is going to end, as far as one knows; empty: one does not.
    struct forecast {
        clock::time_point end = clock::time_point::max();
        clock::duration length{};
        /// Worth relying on: nobody needs to be told before.
        bool reliable = false;
    };

    /// Before it goes to sleep, which takes longer than a short op, a context looks for this long.
    static constexpr clock::duration last_look = std::chrono::microseconds(6);

    /// Who relies on a forecast looks this often, or 32 times, before the time, and sleeps no shorter: an op may be
    /// quicker than it was, and a core that was asleep is slow to launch the next one, the longer the slower.
    static constexpr clock::duration nap = std::chrono::microseconds(200);

    /// `progressed`: something was started or ended since the last call.
    decision decide(bool in_flight, bool progressed, clock::time_point now, const forecast& next) noexcept;

private:
    decision adapt(clock::time_point now, const forecast& next) const noexcept;

    /// One that is meant to be endless could not be added to a time.
    static constexpr clock::duration endless = std::chrono::hours(1);

    completion completion_;
    clock::duration spin_budget_;
    clock::time_point last_progress_{};
};

} // namespace coaccel::detail

#endif
