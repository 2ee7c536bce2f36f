#ifndef COACCEL_SERVE_RUN_ESTIMATES_HPP
#define COACCEL_SERVE_RUN_ESTIMATES_HPP

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <vector>

namespace coaccel::detail {

/// How long batches of each shape and size take, as a moving average.
class run_estimates {
public:
    using duration = std::chrono::nanoseconds;

    /// A time that no run takes, because the clock has jumped, counts as the nearest possible one.
    void add(std::uint64_t shape, std::uint32_t rows, duration run)
    {
        run = std::clamp(run, duration::zero(), longest);
        const auto at = find(shape, rows);
        if (at == known_.end() || at->what != key{shape, rows}) {
            insert({{shape, rows}, run, ++time_});
            return;
        }
        at->last = ++time_;
        // A single stall, such as the repair of a device, must not make the estimate useless for a long time.
        at->run += (std::min(run, 2 * at->run) - at->run) / 8;
    }

    /// For a batch with this many rows; zero if nothing is known of the shape. A size that was not measured has the
    /// estimate of the next larger size, or else of the next smaller one.
    duration of(std::uint64_t shape, std::uint32_t rows) const noexcept
    {
        const auto at = find(shape, rows);
        if (at != known_.end() && at->what.shape == shape)
            return at->run;
        if (at != known_.begin() && std::prev(at)->what.shape == shape)
            return std::prev(at)->run;
        return duration::zero();
    }

    /// Zero if this very size was not measured.
    duration measured(std::uint64_t shape, std::uint32_t rows) const noexcept
    {
        const auto at = find(shape, rows);
        return at != known_.end() && at->what == key{shape, rows} ? at->run : duration::zero();
    }

private:
    struct key {
        std::uint64_t shape;
        std::uint32_t rows;

        friend auto operator<=>(const key&, const key&) = default;
    };

    struct entry {
        key what;
        duration run;
        /// When it was measured last.
        std::uint64_t last;
    };

    /// Multiples of it are in the range of a duration.
    static constexpr duration longest = std::chrono::hours(24);

    /// A function may get batches of any number of shapes.
    static constexpr std::size_t most = 256;

    void insert(const entry& e)
    {
        if (known_.size() >= most)
            known_.erase(std::ranges::min_element(known_, {}, &entry::last));
        known_.insert(find(e.what.shape, e.what.rows), e);
    }

    std::vector<entry>::iterator find(std::uint64_t shape, std::uint32_t rows) noexcept
    {
        return std::ranges::lower_bound(known_, key{shape, rows}, {}, &entry::what);
    }
    std::vector<entry>::const_iterator find(std::uint64_t shape, std::uint32_t rows) const noexcept
    {
        return std::ranges::lower_bound(known_, key{shape, rows}, {}, &entry::what);
    }

    /// Ascending.
    std::vector<entry> known_;
    std::uint64_t time_ = 0;
};

} // namespace coaccel::detail

#endif
