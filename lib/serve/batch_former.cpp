#include "serve/batch_former.hpp"

#include "serve/later.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::detail {
namespace {

std::int64_t microseconds(std::chrono::nanoseconds time) noexcept
{
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

} // namespace

const batch_request& batch_former::group::first() const noexcept
{
    return std::ranges::find_if_not(waiting, &request_list::empty)->front();
}

const batch_request& batch_former::group::oldest() const noexcept
{
    const batch_request* found = nullptr;
    for (const request_list& level : waiting)
        if (!level.empty() && (!found || level.front().sequence < found->sequence))
            found = &level.front();
    return *found;
}

batch_former::batch_former(batch_rules rules) : rules_(std::move(rules)) {}

batch_former::~batch_former()
{
    while (pop()) {
    }
}

error_code batch_former::offer(batch_request& r, time_point now)
{
    const auto p = static_cast<std::size_t>(priority_of(r));
    const bool waits = r.options.when_full == when_full::wait;
    const bool full = queued_[p] >= rules_.max_queued[p];
    if (full && (!waits || queued_[p] - rules_.max_queued[p] >= rules_.max_waiting))
        return op_error(errc::queue_full, rules_.name, {queued_[p], " requests of this priority wait already"});
    if (r.options.deadline <= now)
        return op_error(errc::deadline_exceeded, rules_.name, {"the deadline has passed"});
    // Without other requests it is always tried, so that an estimate that is too long corrects itself.
    if (r.options.deadline != exec_options::no_deadline && (running_ > 0 || queued() > 0)) {
        const auto needed = wait_before(r) + estimates_.of(r.shape, r.rows);
        const auto left = time_between(now, r.options.deadline);
        if (left < needed)
            return op_error(errc::deadline_exceeded, rules_.name,
                            {"the deadline is in ", microseconds(left), " us, and the request would take about ",
                             microseconds(needed), " us"});
    }
    r.arrived = now;
    r.sequence = arrivals_ + 1;
    add(r, place::back);
    ++arrivals_;
    return {};
}

void batch_former::put_back(batch_request& r)
{
    add(r, place::front);
}

void batch_former::add(batch_request& r, place where)
{
    group& g = group_for(r, where);
    r.group = &g;
    const std::size_t level = level_of(r);
    request_list& waiting = g.waiting[level];
    auto position = waiting.end();
    if (where == place::front)
        position = std::ranges::find_if(waiting, [&](const batch_request& x) { return x.sequence > r.sequence; });
    waiting.insert(position, r);
    g.level_rows[level] += r.rows;
    rows_[level] += r.rows;
    ++queued_[static_cast<std::size_t>(priority_of(r))];
    if (r.options.deadline != exec_options::no_deadline) {
        g.deadlines.insert(r);
        deadlines_.insert(r);
    }
}

/// Removes the request from its group, which may be empty afterwards.
void batch_former::unlink(group& g, std::size_t level, batch_request& r) noexcept
{
    r.group = nullptr;
    g.waiting[level].erase(request_list::s_iterator_to(r));
    g.level_rows[level] -= r.rows;
    rows_[level] -= r.rows;
    --queued_[static_cast<std::size_t>(priority_of(r))];
    if (r.by_deadline.is_linked()) {
        g.deadlines.erase(group_deadline_set::s_iterator_to(r));
        deadlines_.erase(deadline_set::s_iterator_to(r));
    }
}

void batch_former::remove(batch_request& r) noexcept
{
    group& g = *static_cast<group*>(r.group);
    unlink(g, level_of(r), r);
    if (g.rows() == 0)
        erase(g);
}

batch_request* batch_former::expired(time_point now) noexcept
{
    if (deadlines_.empty() || deadlines_.begin()->options.deadline > now)
        return nullptr;
    batch_request& r = *deadlines_.begin();
    remove(r);
    return &r;
}

batch_request* batch_former::pop() noexcept
{
    if (groups_.empty())
        return nullptr;
    auto& r = const_cast<batch_request&>(groups_.front().oldest());
    remove(r);
    return &r;
}

batch_former::time_point batch_former::wake_at(time_point now) const noexcept
{
    time_point at = time_point::max();
    const auto consider = [&](time_point t) {
        if (t > now)
            at = std::min(at, t);
    };
    if (!deadlines_.empty())
        consider(deadlines_.begin()->options.deadline);
    // While all places are taken, the end of a batch comes first.
    if (running_ >= rules_.max_in_flight)
        return at;
    for (const group& g : groups_) {
        consider(due_time(g));
        if (keeps_order())
            break;
    }
    return at;
}

batch_former::group& batch_former::group_for(const batch_request& r, place where)
{
    if (keeps_order()) {
        group* const next = groups_.empty() ? nullptr : where == place::front ? &groups_.front() : &groups_.back();
        return next && next->shape == r.shape ? *next : add_group(r.shape, where);
    }
    if (recent_ && recent_->shape == r.shape)
        return *recent_;
    const auto found = by_shape_.find(r.shape);
    if (found != by_shape_.end()) {
        recent_ = &*found->second;
        return *recent_;
    }
    group& made = add_group(r.shape, place::back);
    try {
        by_shape_.emplace(r.shape, made.here);
    } catch (...) {
        groups_.pop_back();
        throw;
    }
    recent_ = &made;
    return made;
}

batch_former::group& batch_former::add_group(std::uint64_t shape, place where)
{
    const auto here = groups_.emplace(where == place::front ? groups_.begin() : groups_.end());
    here->shape = shape;
    here->here = here;
    return *here;
}

void batch_former::erase(group& g) noexcept
{
    if (!keeps_order())
        by_shape_.erase(g.shape);
    if (recent_ == &g)
        recent_ = nullptr;
    groups_.erase(g.here);
}

/// Whether waiting would not make the batch larger, or it has reached a size at which it starts at once.
bool batch_former::is_full(const group& g) const noexcept
{
    if (g.rows() >= rules_.max_rows || (keeps_order() && &g != &groups_.back()))
        return true;
    return !rules_.preferred.empty() && g.rows() >= rules_.preferred.front();
}

batch_former::time_point batch_former::due_time(const group& g) const noexcept
{
    const time_point waited = later(g.oldest().arrived, rules_.max_delay);
    if (g.deadlines.empty())
        return waited;
    const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(g.rows(), rules_.max_rows));
    const batch_request& first = *g.deadlines.begin();
    // Twice the mean, because runs vary; at least half of the time that there is, because the mean may be unknown.
    const duration reserve =
        std::max<duration>(2 * estimates_.of(g.shape, rows), time_between(first.arrived, first.options.deadline) / 2);
    const bool at_once = time_between(first.arrived, first.options.deadline) <= reserve;
    return std::min(waited, at_once ? first.arrived : first.options.deadline - reserve);
}

bool batch_former::is_due(const group& g, time_point now) const noexcept
{
    return due_time(g) <= now;
}

bool batch_former::is_before(const group& a, const group& b, const batch_former& f) noexcept
{
    const batch_request& x = a.first();
    const batch_request& y = b.first();
    if (f.level_of(x) != f.level_of(y))
        return f.level_of(x) < f.level_of(y);
    return x.sequence < y.sequence;
}

/// As many rows as fit. Fewer if a preferred size is reached, or if the plan would contain too much padding, and the
/// next smaller one, filled, takes less time for each row.
std::uint32_t batch_former::rows_to_take(const group& g) const noexcept
{
    if (g.rows() >= rules_.max_rows)
        return rules_.max_rows;
    const auto rows = static_cast<std::uint32_t>(g.rows());
    const auto preferred = std::ranges::upper_bound(rules_.preferred, rows);
    if (preferred != rules_.preferred.begin())
        return *std::prev(preferred);
    const auto larger = std::ranges::lower_bound(rules_.sizes, rows);
    if (larger == rules_.sizes.end() || larger == rules_.sizes.begin() ||
        *larger - rows <= rules_.max_padding * *larger)
        return rows;
    const std::uint32_t smaller = *std::prev(larger);
    const auto of_larger = estimates_.measured(g.shape, *larger);
    const auto of_smaller = estimates_.measured(g.shape, smaller);
    const bool pays = of_smaller.count() > 0 && of_larger.count() > 0 &&
                      of_smaller.count() / double(smaller) < of_larger.count() / double(rows);
    return pays ? smaller : rows;
}

void batch_former::take(group& g, std::vector<batch_request*>& out)
{
    std::uint32_t left = rows_to_take(g);
    // So that nothing can fail once a request has left the group.
    const std::size_t before = out.size();
    out.reserve(before + left);
    ++running_;
    for (std::size_t level = 0; level < priority_count && left > 0; ++level) {
        request_list& waiting = g.waiting[level];
        while (left > 0 && !waiting.empty()) {
            batch_request& r = waiting.front();
            // The first one always fits into a batch of max_rows, although a smaller size may have been aimed at.
            if (r.rows > left && out.size() > before)
                return;
            left -= std::min(left, r.rows);
            unlink(g, level, r);
            out.push_back(&r);
        }
    }
    if (g.rows() == 0)
        erase(g);
}

/// The time of the batches that must start before the request, one after another in each place.
batch_former::duration batch_former::wait_before(const batch_request& r) const noexcept
{
    // Longer needs no precision, and must not overflow.
    constexpr duration longest = std::chrono::hours(1);
    duration total{0};
    const auto add = [&](std::uint64_t shape, const std::array<std::uint64_t, priority_count>& level_rows) {
        std::uint64_t ahead = 0;
        for (std::size_t level = 0; level <= level_of(r); ++level)
            ahead += level_rows[level];
        const auto each = estimates_.of(shape, rules_.max_rows);
        const std::uint64_t batches = ahead / rules_.max_rows;
        const bool too_long = each.count() > 0 && batches > static_cast<std::uint64_t>((longest - total) / each);
        total = too_long ? longest : total + each * static_cast<std::int64_t>(batches);
    };
    // In order of arrival there may be as many groups as requests.
    if (keeps_order())
        add(r.shape, rows_);
    else
        for (const group& g : groups_)
            add(g.shape, g.level_rows);
    return total / rules_.max_in_flight;
}

} // namespace coaccel::detail
