#include "serve/fair_queue.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace coaccel::detail {
namespace {

/// The unit of virtual time is 2^-24 ns of a tenant with weight 1, so that the largest weight loses nothing that
/// counts.
constexpr wide_integer unit = wide_integer(1) << 24;
constexpr std::uint64_t millionths = 1'000'000;
/// The weight of a measurement in the average is 1 / 8.
constexpr std::int64_t smoothing = 8;

wide_integer virtual_time(const fair_tenant& t, wide_integer ns) noexcept
{
    return ns * unit / t.rules.weight;
}

/// Preconditions: the tenant has a minimum share.
wide_integer minimum_time(const fair_tenant& t, wide_integer ns) noexcept
{
    return ns * unit * millionths / t.minimum;
}

/// At most the largest duration.
std::chrono::nanoseconds sum(std::chrono::nanoseconds a, std::int64_t ns) noexcept
{
    const std::chrono::nanoseconds b(ns);
    return b < std::chrono::nanoseconds::max() - a ? a + b : std::chrono::nanoseconds::max();
}

} // namespace

fair_queue::fair_queue(const serve::fair_share_options& options) : options_(options)
{
    for (const auto& [name, rules] : options_.tenants)
        add(name, rules, true);
}

fair_queue::~fair_queue()
{
    ready_.clear();
    minimum_.clear();
    idle_.clear();
    deadlines_.clear();
    waiting_.clear();
    for (auto& [name, tenant] : tenants_)
        tenant.waiting.clear();
}

fair_tenant& fair_queue::add(std::string name, const serve::tenant_options& rules, bool configured)
{
    const auto at = tenants_.try_emplace(std::move(name)).first;
    fair_tenant& t = at->second;
    t.name = &at->first;
    t.rules = rules;
    t.configured = configured;
    t.minimum = static_cast<std::uint64_t>(std::llround(rules.minimum_share * static_cast<double>(millionths)));
    t.estimate = rules.estimate.count();
    // Without savings: otherwise new names would be worth a burst each.
    t.used = now_;
    t.owed_from = total_;
    if (!configured)
        ++unconfigured_;
    enter_sets(t);
    return t;
}

bool fair_queue::forget_one() noexcept
{
    // One that owes device time would lose its debt with its name.
    if (idle_.empty() || idle_.begin()->used > now_)
        return false;
    fair_tenant& t = *idle_.begin();
    leave_sets(t);
    tenants_.erase(tenants_.find(*t.name));
    --unconfigured_;
    ++forgotten_;
    return true;
}

fair_tenant* fair_queue::find_or_add(std::string_view name)
{
    if (const auto found = tenants_.find(name); found != tenants_.end())
        return &found->second;
    std::string copy(name);
    if (unconfigured_ >= options_.max_tenants && !forget_one())
        return nullptr;
    return &add(std::move(copy), options_.others, false);
}

error_code fair_queue::offer(fair_request& r, std::string_view name, time_point now)
{
    if (r.deadline <= now) {
        ++all_.expired;
        return op_error(errc::deadline_exceeded, options_.name,
                        {"tenant ", name, ": the deadline had passed when the request arrived"});
    }
    fair_tenant* const t = find_or_add(name);
    if (!t) {
        ++all_.refused;
        return op_error(errc::queue_full, options_.name,
                        {"tenant ", name, " is unknown, and max_tenants (", options_.max_tenants,
                         ") others have requests or owe device time"});
    }
    const auto refuse = [&](std::uint64_t serve::turn_counts::* counter) {
        ++(t->counts.*counter);
        ++(all_.*counter);
    };
    if (t->counts.queued >= t->rules.max_queued) {
        refuse(&serve::turn_counts::refused);
        return op_error(errc::queue_full, options_.name,
                        {"tenant ", name, " has max_queued (", t->rules.max_queued, ") waiting requests"});
    }
    if (all_.queued >= options_.max_queued) {
        refuse(&serve::turn_counts::refused);
        return op_error(
            errc::queue_full, options_.name,
            {"tenant ", name, ": all tenants together have max_queued (", options_.max_queued, ") waiting requests"});
    }
    if (r.deadline != exec_options::no_deadline && t->counts.queued > 0) {
        // Nothing can be said about other tenants, but those requests are certainly served before.
        const auto places = std::min(options_.max_running, t->rules.max_running);
        const wide_integer before = wide_integer(t->counts.queued) * t->estimate / places;
        if (before > std::chrono::duration_cast<duration>(r.deadline - now).count()) {
            refuse(&serve::turn_counts::expired);
            return op_error(errc::deadline_exceeded, options_.name,
                            {"tenant ", name, ": its ", t->counts.queued,
                             " waiting requests leave no time for a further one before its deadline"});
        }
    }
    r.arrived = now;
    r.turn.tenant = t;
    const bool could_start = can_start(*t);
    leave_sets(*t);
    t->waiting.push_back(r);
    waiting_.push_back(r);
    if (r.deadline != exec_options::no_deadline)
        deadlines_.insert(r);
    ++t->counts.queued;
    ++all_.queued;
    if (!could_start && can_start(*t))
        catch_up(*t, 0);
    enter_sets(*t);
    return {};
}

fair_request* fair_queue::next() noexcept
{
    if (!may_start())
        return nullptr;
    fair_tenant* t = &*ready_.begin();
    bool guaranteed = false;
    if (!minimum_.empty() && minimum_.begin()->minimum_key <= total_ && &*minimum_.begin() != t) {
        t = &*minimum_.begin();
        guaranteed = true;
    } else {
        now_ = std::max(now_, t->used);
    }
    fair_request& r = t->waiting.front();
    leave_sets(*t);
    unlink(r);
    r.turn.estimate = r.estimate.count() > 0 ? std::min<std::int64_t>(r.estimate.count(), longest) : t->estimate;
    r.turn.guaranteed = guaranteed;
    t->in_flight += r.turn.estimate;
    ++t->counts.running;
    ++t->counts.started;
    ++all_.running;
    ++all_.started;
    enter_sets(*t);
    return &r;
}

void fair_queue::finish(const fair_turn& turn, duration time) noexcept
{
    fair_tenant& t = *turn.tenant;
    const std::int64_t used = std::clamp<std::int64_t>(time.count(), 0, longest);
    const bool could_start = can_start(t);
    leave_sets(t);
    t.in_flight -= turn.estimate;
    --t.counts.running;
    --all_.running;
    t.counts.device_time = sum(t.counts.device_time, used);
    all_.device_time = sum(all_.device_time, used);
    settle(t, used, turn.guaranteed);
    // Work that did not run says nothing about that which does.
    if (used > 0) {
        t.estimate = t.measured ? t.estimate + (used - t.estimate) / smoothing : used;
        t.measured = true;
    }
    // The estimate of this turn may have kept it back until now.
    if (!could_start && can_start(t))
        catch_up(t, turn.estimate);
    // Between two periods of work all debts are forgotten, as everybody could have had the device.
    if (all_.running == 0 && all_.queued == 0)
        now_ = std::max(now_, latest_);
    enter_sets(t);
}

void fair_queue::settle(fair_tenant& t, std::int64_t used, bool guaranteed) noexcept
{
    const wide_integer time = virtual_time(t, used);
    if (guaranteed && t.used > now_)
        t.used = std::max(t.used, now_ + time);
    else
        t.used += time;
    latest_ = std::max(latest_, t.used);
    total_ += used * unit;
    if (t.minimum > 0)
        t.owed_from += minimum_time(t, used);
}

/// Called when the tenant begins to be ready. `slack`: a lag, in nanoseconds, that is not its own fault.
void fair_queue::catch_up(fair_tenant& t, std::int64_t slack) noexcept
{
    const wide_integer lag = t.in_flight + slack;
    t.used = std::max(t.used, now_ - virtual_time(t, lag + t.rules.burst.count()));
    if (t.minimum > 0)
        t.owed_from = std::max(t.owed_from, total_ - minimum_time(t, lag));
}

void fair_queue::leave_sets(fair_tenant& t) noexcept
{
    if (t.in_ready.is_linked())
        ready_.erase(ready_.iterator_to(t));
    if (t.in_minimum.is_linked())
        minimum_.erase(minimum_.iterator_to(t));
    if (t.in_idle.is_linked())
        idle_.erase(idle_.iterator_to(t));
}

void fair_queue::enter_sets(fair_tenant& t) noexcept
{
    if (can_start(t)) {
        t.key = t.used + virtual_time(t, t.in_flight);
        ready_.insert(t);
        if (t.minimum > 0) {
            t.minimum_key = t.owed_from + minimum_time(t, t.in_flight);
            minimum_.insert(t);
        }
    } else if (!t.configured && t.counts.queued == 0 && t.counts.running == 0) {
        idle_.insert(t);
    }
}

void fair_queue::unlink(fair_request& r) noexcept
{
    fair_tenant& t = *r.turn.tenant;
    t.waiting.erase(t.waiting.iterator_to(r));
    waiting_.erase(waiting_.iterator_to(r));
    if (r.by_deadline.is_linked())
        deadlines_.erase(deadlines_.iterator_to(r));
    --t.counts.queued;
    --all_.queued;
}

void fair_queue::remove(fair_request& r, leaving why) noexcept
{
    fair_tenant& t = *r.turn.tenant;
    leave_sets(t);
    unlink(r);
    constexpr std::uint64_t serve::turn_counts::* counters[] = {
        &serve::turn_counts::cancelled, &serve::turn_counts::expired, &serve::turn_counts::refused};
    const auto counter = counters[static_cast<std::size_t>(why)];
    ++(t.counts.*counter);
    ++(all_.*counter);
    enter_sets(t);
}

fair_request* fair_queue::expired(time_point now) noexcept
{
    if (deadlines_.empty() || deadlines_.begin()->deadline > now)
        return nullptr;
    fair_request& r = *deadlines_.begin();
    remove(r, leaving::expired);
    return &r;
}

fair_request* fair_queue::pop() noexcept
{
    if (waiting_.empty())
        return nullptr;
    fair_request& r = waiting_.front();
    remove(r, leaving::refused);
    return &r;
}

fair_queue::time_point fair_queue::wake_at() const noexcept
{
    return deadlines_.empty() ? exec_options::no_deadline : deadlines_.begin()->deadline;
}

} // namespace coaccel::detail
