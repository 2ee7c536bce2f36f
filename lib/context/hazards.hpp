#ifndef COACCEL_CONTEXT_HAZARDS_HPP
#define COACCEL_CONTEXT_HAZARDS_HPP

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

/// Elements of a buffer, from `begin` up to but not including `end`.
struct element_range {
    std::uint64_t begin = 0;
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();

    bool overlaps(const element_range& other) const noexcept { return begin < other.end && other.begin < end; }
    bool contains(const element_range& other) const noexcept { return begin <= other.begin && other.end <= end; }

    friend bool operator==(const element_range&, const element_range&) = default;
};

/// The whole of any buffer.
inline constexpr element_range all_elements{};

/// Where each part of a buffer was used last. A read waits for the last writes of its elements, a write for those and
/// for all reads since.
///
/// Uses of parts are kept one by one, up to `most_parts`. Beyond that, uses on one lane are taken for one use of
/// everything between the first and the last element, and if that is not enough, all of them for uses of the whole
/// buffer: an op may wait for more than it must, never for less.
class COACCEL_DECL access_log {
public:
    static constexpr std::size_t most_parts = 8;

    /// Adds to `waits` what an access of this kind has to wait for.
    void collect(access mode, const element_range& where, frontier& waits) const;
    void collect(access mode, frontier& waits) const { collect(mode, all_elements, waits); }

    /// Notes that the access happens at p, after what it has to wait for. The clock tells what need not be kept.
    void note(access mode, const element_range& where, point p, const lane_clock& clock);
    void note(access mode, point p);

    /// Adds every point at which the buffer is still used.
    void collect_uses(const lane_clock& clock, frontier& uses) const;

private:
    struct part {
        element_range where;
        point at;
        bool is_write = false;
    };

    void make_room(const lane_clock& clock);

    /// Uses of the whole buffer, or of parts that are no longer told apart.
    frontier writes_;
    frontier reads_;
    boost::container::static_vector<part, most_parts> parts_;
};

} // namespace coaccel::detail

#endif
