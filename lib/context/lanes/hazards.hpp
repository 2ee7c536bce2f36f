#ifndef COACCEL_CONTEXT_LANES_HAZARDS_HPP
#define COACCEL_CONTEXT_LANES_HAZARDS_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/operand.hpp>

#include <boost/container/small_vector.hpp>
#include <boost/container/static_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace coaccel::detail {

using lane_id = std::uint16_t;

/// A position in the order of a lane. Tickets of a lane count from 1; ticket 0 has always passed.
struct point {
    lane_id lane = 0;
    std::uint64_t ticket = 0;

    friend bool operator==(const point&, const point&) = default;
};

/// At most one point per lane, the latest. The lanes of the default policy and the lane of the allocations need no heap
/// memory.
using frontier = boost::container::small_vector<point, 5>;

/// Adds p to the frontier, or advances the point of its lane to p.
COACCEL_DECL void advance(frontier& f, point p);

/// The progress of each lane, and up to which point each lane already waits for each other lane.
class COACCEL_DECL lane_clock {
public:
    lane_id add_lane();
    std::size_t lanes() const noexcept { return passed_.size(); }

    void pass(point p) noexcept { passed_[p.lane] = p.ticket; }
    bool passed(point p) const noexcept { return p.ticket <= passed_[p.lane]; }

    /// Whether work on `lane` must wait for p. If so, the wait counts as done from now on.
    bool must_wait(lane_id lane, point p);

private:
    std::vector<std::uint64_t> passed_;
    std::vector<std::vector<std::uint64_t>> waited_;
};

/// Elements of a buffer: the half-open range [begin, end).
struct element_range {
    std::uint64_t begin = 0;
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();

    bool overlaps(const element_range& other) const noexcept { return begin < other.end && other.begin < end; }
    bool contains(const element_range& other) const noexcept { return begin <= other.begin && other.end <= end; }

    friend bool operator==(const element_range&, const element_range&) = default;
};

/// All elements of a buffer of any size.
inline constexpr element_range all_elements{};

/// The last uses of each part of a buffer. A read waits for the last writes of its elements, a write for those and for
/// all reads since.
///
/// Up to `most_parts` uses of parts are stored individually. Beyond that, uses on one lane are merged into one use of
/// everything between the first and the last element. If that is not enough, they all become uses of the whole buffer.
/// An op may thus wait for more than necessary, never for less.
class COACCEL_DECL access_log {
public:
    static constexpr std::size_t most_parts = 8;

    /// Adds to `waits` the points that an access of this kind must wait for.
    void collect(access mode, const element_range& where, frontier& waits) const;
    void collect(access mode, frontier& waits) const { collect(mode, all_elements, waits); }

    /// Records that the access happens at p, after the points it waits for. The clock tells which entries have passed
    /// and can be dropped.
    void note(access mode, const element_range& where, point p, const lane_clock& clock);
    void note(access mode, point p);

    /// Adds every point that has not passed yet and uses the buffer.
    void collect_uses(const lane_clock& clock, frontier& uses) const;

private:
    struct part {
        element_range where;
        point at;
        bool is_write = false;
    };

    void make_room(const lane_clock& clock);

    /// Uses of the whole buffer, and merged uses of parts.
    frontier writes_;
    frontier reads_;
    boost::container::static_vector<part, most_parts> parts_;
};

} // namespace coaccel::detail

#endif
