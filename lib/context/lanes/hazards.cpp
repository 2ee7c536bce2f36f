#include "context/lanes/hazards.hpp"

#include <algorithm>

namespace coaccel::detail {
namespace {

// The containers of Boost 1.81 have no erase_if.
template <class Container, class Predicate>
void remove_where(Container& from, Predicate which)
{
    from.erase(std::remove_if(from.begin(), from.end(), which), from.end());
}

} // namespace

void advance(frontier& f, point p)
{
    const auto same_lane = std::ranges::find(f, p.lane, &point::lane);
    if (same_lane == f.end())
        f.push_back(p);
    else
        same_lane->ticket = std::max(same_lane->ticket, p.ticket);
}

lane_id lane_clock::add_lane()
{
    passed_.push_back(0);
    waited_.emplace_back();
    for (auto& row : waited_)
        row.resize(passed_.size());
    return static_cast<lane_id>(passed_.size() - 1);
}

bool lane_clock::must_wait(lane_id lane, point p)
{
    auto& waited = waited_[lane][p.lane];
    if (lane == p.lane || passed(p) || p.ticket <= waited)
        return false;
    waited = p.ticket;
    return true;
}

void access_log::collect(access mode, const element_range& where, frontier& waits) const
{
    const bool is_write = writes(mode);
    for (const point& write : writes_)
        advance(waits, write);
    if (is_write)
        for (const point& read : reads_)
            advance(waits, read);
    for (const part& p : parts_)
        if ((is_write || p.is_write) && p.where.overlaps(where))
            advance(waits, p.at);
}

void access_log::note(access mode, point p)
{
    if (!writes(mode))
        return advance(reads_, p);
    writes_.assign(1, p);
    reads_.clear();
    parts_.clear();
}

void access_log::note(access mode, const element_range& where, point p, const lane_clock& clock)
{
    if (where == all_elements)
        return note(mode, p);
    const bool is_write = writes(mode);
    // A write has waited for every earlier use of its elements, so waiting for the write covers them. A read covers
    // only earlier reads on its own lane.
    remove_where(parts_, [&](const part& old) {
        return where.contains(old.where) && (is_write || (!old.is_write && old.at.lane == p.lane));
    });
    if (parts_.size() == most_parts)
        make_room(clock);
    parts_.push_back({where, p, is_write});
}

void access_log::make_room(const lane_clock& clock)
{
    remove_where(parts_, [&](const part& old) { return clock.passed(old.at); });
    for (auto kept = parts_.begin(); kept != parts_.end(); ++kept)
        for (auto other = kept + 1; other != parts_.end();) {
            if (other->at.lane != kept->at.lane || other->is_write != kept->is_write) {
                ++other;
                continue;
            }
            kept->where.begin = std::min(kept->where.begin, other->where.begin);
            kept->where.end = std::max(kept->where.end, other->where.end);
            kept->at.ticket = std::max(kept->at.ticket, other->at.ticket);
            other = parts_.erase(other);
        }
    if (parts_.size() < most_parts)
        return;
    for (frontier* points : {&writes_, &reads_})
        remove_where(*points, [&](point old) { return clock.passed(old); });
    for (const part& old : parts_)
        advance(old.is_write ? writes_ : reads_, old.at);
    parts_.clear();
}

void access_log::collect_uses(const lane_clock& clock, frontier& uses) const
{
    const auto add = [&](point p) {
        if (!clock.passed(p))
            advance(uses, p);
    };
    for (const frontier* points : {&writes_, &reads_})
        for (const point& p : *points)
            add(p);
    for (const part& p : parts_)
        add(p.at);
}

} // namespace coaccel::detail
