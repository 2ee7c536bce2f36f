#ifndef COACCEL_CONTEXT_HAZARDS_HPP
#define COACCEL_CONTEXT_HAZARDS_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/operand.hpp>

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <vector>

namespace coaccel::detail {

using lane_id = std::uint16_t;

/// A place in a lane's order. Tickets of a lane count from 1; ticket 0 has always passed.
struct point {
    lane_id lane = 0;
    std::uint64_t ticket = 0;

    friend bool operator==(const point&, const point&) = default;
};

/// At most one point per lane: the latest.
using frontier = boost::container::small_vector<point, 4>;

/// Moves the frontier on to p.
COACCEL_DECL void advance(frontier& f, point p);

/// How far each lane has come, and how far each is known to wait for each other.
class COACCEL_DECL lane_clock {
public:
    lane_id add_lane();
    std::size_t lanes() const noexcept { return passed_.size(); }

    void pass(point p) noexcept { passed_[p.lane] = p.ticket; }
    bool passed(point p) const noexcept { return p.ticket <= passed_[p.lane]; }

    /// Whether work on `lane` must be held back for p; if so it is taken as done from then on.
    bool must_wait(lane_id lane, point p);

private:
    std::vector<std::uint64_t> passed_;
    std::vector<std::vector<std::uint64_t>> waited_;
};

/// Who used a buffer last. Reads wait for the last write, writes for the last write and all reads since.
class COACCEL_DECL access_log {
public:
    /// Adds to `waits` what an access of this kind has to wait for.
    void collect(access mode, frontier& waits) const;

    /// Notes that the access happens at p.
    void note(access mode, point p);

    /// Adds every point at which the buffer is still used.
    void collect_uses(const lane_clock& clock, frontier& uses) const;

private:
    point write_;
    frontier reads_;
};

} // namespace coaccel::detail

#endif
