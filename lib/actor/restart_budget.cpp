#include <coaccel/actor/restart_budget.hpp>

#include <boost/assert.hpp>

#include <algorithm>
#include <cmath>

namespace coaccel {

restart_budget::restart_budget(const restart_policy& policy) : policy_(policy)
{
    BOOST_ASSERT(!policy_.validate());
}

restart_budget::decision restart_budget::on_failure(time_point now, const error_code& ec, double random)
{
    const directive wanted = policy_.decider(ec);
    return wanted == directive::restart ? restart(now, random) : decision{wanted, duration::zero()};
}

restart_budget::decision restart_budget::restart(time_point now, double random)
{
    if (left(now) == 0)
        return {directive::escalate, duration::zero(), true};
    std::erase_if(restarts_, [&](time_point at) { return now - at >= policy_.window; });
    const duration delay = backoff(restarts_.size(), random);
    restarts_.push_back(delay < time_point::max() - now ? now + delay : time_point::max());
    return {directive::restart, delay};
}

std::size_t restart_budget::left(time_point now) const noexcept
{
    const auto counted =
        std::count_if(restarts_.begin(), restarts_.end(), [&](time_point at) { return now - at < policy_.window; });
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, policy_.max_restarts - counted));
}

restart_budget::duration restart_budget::backoff(std::size_t restarts, double random) const noexcept
{
    // Floating point up to the cap: the product may exceed the range of a duration.
    const double cap = static_cast<double>(policy_.max_backoff.count());
    const double growth = std::pow(policy_.multiplier, static_cast<double>(restarts));
    const double grown = static_cast<double>(policy_.initial_backoff.count()) * growth;
    const double spread = std::min(grown, cap) * (1.0 + policy_.jitter * (2.0 * random - 1.0));
    // Written so that 0 * infinity, which is NaN, also yields at most the cap.
    if (!(spread < cap))
        return policy_.max_backoff;
    return duration(static_cast<duration::rep>(spread));
}

} // namespace coaccel
