#ifndef COACCEL_CONTEXT_COMPLETION_DURATION_ESTIMATOR_HPP
#define COACCEL_CONTEXT_COMPLETION_DURATION_ESTIMATOR_HPP

#include "context/context.hpp"

#include <array>

namespace coaccel::detail {

/// Learns how long ops take, so that the executor is already polling when an op completes. A wake-up costs tens of
/// microseconds; polling near the expected end avoids it.
class COACCEL_DECL duration_estimator {
public:
    using duration = clock::duration;

    /// Requests of the same kind are expected to take about equally long.
    using kind = std::uint64_t;

    static kind kind_of(const request& r) noexcept;

    struct estimate {
        /// Zero: unknown.
        duration expected{};
        /// The last few completed at the expected time.
        bool reliable = false;
    };

    estimate of(kind k) const noexcept;

    /// If the gap between two polls is longer than this, because the executor was busy, the time of completion is not
    /// known exactly.
    static constexpr duration attention = std::chrono::microseconds(50);

    /// Records a completion. `polling`: the lane was polled continuously, so `taken` is the duration; otherwise it is
    /// an upper limit. `overdue`: the op was still running at its expected end.
    void learn(kind k, duration taken, bool polling, bool overdue) noexcept;

private:
    void saw(kind k, duration taken) noexcept;
    void ended_before(kind k, duration at_most) noexcept;
    void ended_after(kind k, duration at_most) noexcept;

    struct entry {
        kind what = 0;
        duration expected{};
        int hits = 0;
    };

    entry& entry_of(kind k) noexcept { return entries_[k % entries_.size()]; }

    // Kinds that map to the same entry evict each other.
    std::array<entry, 256> entries_{};
};

} // namespace coaccel::detail

#endif
