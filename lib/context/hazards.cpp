#include "context/hazards.hpp"

#include <algorithm>

namespace coaccel::detail {

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

void access_log::collect(access mode, frontier& waits) const
{
    if (write_.ticket != 0)
        advance(waits, write_);
    if (writes(mode))
        for (const point& read : reads_)
            advance(waits, read);
}

void access_log::note(access mode, point p)
{
    if (writes(mode)) {
        write_ = p;
        reads_.clear();
    } else {
        advance(reads_, p);
    }
}

void access_log::collect_uses(const lane_clock& clock, frontier& uses) const
{
    if (!clock.passed(write_))
        advance(uses, write_);
    for (const point& read : reads_)
        if (!clock.passed(read))
            advance(uses, read);
}

} // namespace coaccel::detail
