#include <coaccel/actor/supervision.hpp>

#include <boost/assert.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace coaccel {

supervision::supervision(const restart_policy& policy, std::size_t children)
    : policy_(policy), children_(children, child_state::ended),
      cycles_(policy.strategy == strategy::one_for_one ? children : 1, cycle(policy)), leaving_(children, false)
{}

supervision_step supervision::start()
{
    supervision_step step;
    step.start.resize(children_.size());
    std::iota(step.start.begin(), step.start.end(), std::size_t{0});
    std::fill(children_.begin(), children_.end(), child_state::running);
    step.finished = finished();
    return step;
}

supervision_step supervision::child_failed(std::size_t child, const error_code& ec, time_point now, double random)
{
    BOOST_ASSERT(child < children_.size());
    supervision_step step;
    // A failure while the child is being stopped changes nothing.
    if (children_[child] != child_state::running)
        return step;
    children_[child] = child_state::failed;
    if (stopping_)
        return step;
    cycle& c = cycles_[cycle_of(child)];
    // The current restart stops this child anyway; it does not use the budget a second time.
    if (c.active && std::find(c.members.begin(), c.members.end(), child) != c.members.end())
        return step;
    const auto decision = c.budget.on_failure(now, ec, random);
    switch (decision.directive) {
    case directive::resume:
        children_[child] = child_state::running;
        step.resume.push_back(child);
        break;
    case directive::restart:
        begin_restart(child, decision.delay);
        step.restarts = static_cast<std::size_t>(policy_.max_restarts) - c.budget.left(now);
        advance(c, now, step);
        break;
    case directive::stop:
        leaving_[child] = true;
        children_[child] = child_state::stopping;
        step.stop.push_back(child);
        break;
    case directive::escalate:
        escalated_.push_back(child);
        step.escalate = ec;
        step.used_up = decision.used_up;
        break;
    }
    return step;
}

supervision_step supervision::child_stopped(std::size_t child, time_point now)
{
    BOOST_ASSERT(child < children_.size());
    supervision_step step;
    if (children_[child] == child_state::ended || children_[child] == child_state::waiting)
        return step;
    const bool asked = children_[child] == child_state::stopping;
    const bool returns = asked && !leaving_[child] && !stopping_;
    children_[child] = returns ? child_state::waiting : child_state::ended;
    leaving_[child] = false;
    std::erase(escalated_, child);
    cycle& c = cycles_[cycle_of(child)];
    if (stopping_) {
        std::vector<std::size_t> all(children_.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        stop_next(all, step);
    } else {
        if (!returns) {
            std::erase(c.members, child);
            step.retire.push_back(child);
        }
        if (c.active && !c.due)
            advance(c, now, step);
    }
    step.finished = finished();
    return step;
}

supervision_step supervision::timer(time_point now)
{
    supervision_step step;
    for (cycle& c : cycles_)
        if (c.due && *c.due <= now)
            start_members(c, step);
    return step;
}

supervision_step supervision::resume()
{
    supervision_step step;
    for (const std::size_t child : std::exchange(escalated_, {}))
        if (children_[child] == child_state::failed) {
            children_[child] = child_state::running;
            step.resume.push_back(child);
        }
    return step;
}

supervision_step supervision::stop()
{
    supervision_step step;
    if (!std::exchange(stopping_, true)) {
        for (cycle& c : cycles_) {
            c.active = false;
            c.due.reset();
        }
        std::replace(children_.begin(), children_.end(), child_state::waiting, child_state::ended);
        std::vector<std::size_t> all(children_.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        stop_next(all, step);
    }
    step.finished = finished();
    return step;
}

std::optional<supervision::time_point> supervision::next_due() const
{
    std::optional<time_point> next;
    for (const cycle& c : cycles_)
        if (c.due && (!next || *c.due < *next))
            next = c.due;
    return next;
}

bool supervision::finished() const noexcept
{
    return std::all_of(children_.begin(), children_.end(), [](child_state s) { return s == child_state::ended; });
}

std::size_t supervision::cycle_of(std::size_t child) const noexcept
{
    return policy_.strategy == strategy::one_for_one ? child : 0;
}

void supervision::begin_restart(std::size_t child, restart_budget::duration delay)
{
    cycle& c = cycles_[cycle_of(child)];
    const bool all = policy_.strategy == strategy::one_for_all;
    const bool rest = policy_.strategy == strategy::rest_for_one;
    for (std::size_t i = all ? 0 : child; i < (all || rest ? children_.size() : child + 1); ++i) {
        const bool alive = children_[i] != child_state::ended && !leaving_[i];
        if (alive && std::find(c.members.begin(), c.members.end(), i) == c.members.end())
            c.members.push_back(i);
    }
    std::sort(c.members.begin(), c.members.end());
    // The restart answers escalated failures of its members.
    std::erase_if(escalated_, [&](std::size_t i) { return std::binary_search(c.members.begin(), c.members.end(), i); });
    c.delay = c.active ? std::max(c.delay, delay) : delay;
    c.active = true;
    c.due.reset();
}

void supervision::advance(cycle& c, time_point now, supervision_step& step)
{
    if (stop_next(c.members, step))
        return;
    c.due = now + c.delay;
    if (c.delay == restart_budget::duration::zero())
        start_members(c, step);
}

bool supervision::stop_next(const std::vector<std::size_t>& members, supervision_step& step)
{
    for (auto it = members.rbegin(); it != members.rend(); ++it) {
        const child_state s = children_[*it];
        if (s == child_state::stopping)
            return true;
        if (s == child_state::running || s == child_state::failed) {
            children_[*it] = child_state::stopping;
            step.stop.push_back(*it);
            return true;
        }
    }
    return false;
}

void supervision::start_members(cycle& c, supervision_step& step)
{
    for (const std::size_t child : c.members)
        if (children_[child] == child_state::waiting) {
            children_[child] = child_state::running;
            step.start.push_back(child);
        }
    c.members.clear();
    c.active = false;
    c.due.reset();
}

} // namespace coaccel
