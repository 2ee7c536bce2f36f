#ifndef COACCEL_CONTEXT_END_FORECAST_HPP
#define COACCEL_CONTEXT_END_FORECAST_HPP

#include "context/context.hpp"

#include <array>

namespace coaccel::detail {

/// Learns how long ops take, so that the executor can be looking at the moment one ends. Being woken costs tens of
/// microseconds; who polls when the end is near does not need to be.
class COACCEL_DECL end_forecast {
public:
    using duration = clock::duration;

    /// Ops with the same number are expected to take about as long.
    using kind = std::uint64_t;

    static kind kind_of(const request& r) noexcept;

    struct outlook {
        /// Zero: nothing is known.
        duration expected{};
        /// The last few ended when they were expected to.
        bool reliable = false;
    };

    outlook of(kind k) const noexcept;

    /// Who polls and yet did not look for so long, because the executor was busy, did not see when an op ended.
    static constexpr duration attention = std::chrono::microseconds(50);

    /// An op ended. `polling`: somebody has been looking all the time, so that this is how long it took; else it took
    /// at most as long. `overdue`: the time it was expected to end has come, and it did not.
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

    // Kinds that share an entry drive each other out.
    std::array<entry, 256> entries_{};
};

} // namespace coaccel::detail

#endif
