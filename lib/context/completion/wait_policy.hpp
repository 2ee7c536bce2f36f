#ifndef COACCEL_CONTEXT_COMPLETION_WAIT_POLICY_HPP
#define COACCEL_CONTEXT_COMPLETION_WAIT_POLICY_HPP

#include "context/context.hpp"

#include <algorithm>

namespace coaccel::detail {

/// Decides, after each poll of the lanes, how the context learns of the next completion.
class COACCEL_DECL wait_policy {
public:
    enum class action : std::uint8_t {
        idle,
        /// Poll again as soon as possible.
        poll,
        /// Request a notification, and poll again as soon as possible.
        arm_and_poll,
        /// Request a notification.
        arm,
        /// Sleep until `look_at`, without a notification.
        wait,
    };

    /// The device does not run its work on the CPU.
    static constexpr unsigned own_processors = 0;

    /// `shared_cpus`: how many CPUs the executor shares with the work of the device. On a single CPU, polling would
    /// keep that work from running, so `adaptive` then behaves like `host_fn`.
    explicit wait_policy(const context_options& options, unsigned shared_cpus = own_processors) noexcept
        : completion_(options.completion), spin_budget_(std::min<clock::duration>(options.spin_budget, endless))
    {
        if (completion_ == completion::adaptive && shared_cpus == 1 && spin_budget_ > clock::duration::zero())
            completion_ = completion::host_fn;
    }

    struct decision {
        action what = action::idle;
        /// When to poll again, even without a notification.
        clock::time_point look_at = clock::time_point::max();
        /// Until when to poll if nothing completes.
        clock::time_point until = clock::time_point::max();
        /// Polls because the estimated end is near.
        bool due = false;
    };

    /// When the next op is expected to complete. Default: unknown.
    struct expected_end {
        clock::time_point end = clock::time_point::max();
        clock::duration length{};
        /// The estimates are reliable: no notification is needed before the expected end.
        bool reliable = false;
    };

    /// How long a context polls before it sleeps. Going to sleep takes longer than a short op.
    static constexpr clock::duration last_look = std::chrono::microseconds(6);

    /// With a reliable estimate, the context sleeps at least this long, or 1/32 of the expected duration if that is
    /// longer, between checks before the expected end. It checks in between because an op may be faster than before,
    /// and because a core launches the next op more slowly the longer it has slept.
    static constexpr clock::duration nap = std::chrono::microseconds(200);

    /// `progressed`: a request was started or completed since the last call.
    decision decide(bool in_flight, bool progressed, clock::time_point now, const expected_end& next) noexcept;

private:
    decision adapt(clock::time_point now, const expected_end& next) const noexcept;

    /// Upper limit, because adding a budget that means "forever" to a time point would overflow.
    static constexpr clock::duration endless = std::chrono::hours(1);

    completion completion_;
    clock::duration spin_budget_;
    clock::time_point last_progress_{};
};

} // namespace coaccel::detail

#endif
