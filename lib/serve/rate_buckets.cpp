#include "serve/rate_buckets.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace coaccel::detail {
namespace {

using time_point = rate_buckets::time_point;
using nanoseconds = std::chrono::nanoseconds;

wide_integer count_of(time_point t) noexcept
{
    return std::chrono::duration_cast<nanoseconds>(t.time_since_epoch()).count();
}

wide_integer capacity(const rate_bucket& b) noexcept
{
    return wide_integer(b.rules.burst) * b.rules.period.count();
}

/// When a bucket that is full at `full_at` has had this many tokens for requests, one after another. In nanoseconds.
wide_integer available_at(const rate_bucket& b, wide_integer tokens) noexcept
{
    return divide_up(b.full_at + tokens * b.rules.period.count() - capacity(b), b.rules.rate);
}

/// A bucket that was full before is full now, and one that was emptied in the future is empty.
void update(rate_bucket& b, time_point now) noexcept
{
    const wide_integer at = count_of(now) * b.rules.rate;
    b.full_at = std::clamp(b.full_at, at, at + capacity(b));
}

nanoseconds limited(wide_integer ns) noexcept
{
    constexpr wide_integer most = nanoseconds::max().count();
    return nanoseconds(static_cast<std::int64_t>(std::clamp<wide_integer>(ns, 0, most)));
}

} // namespace

rate_buckets::rate_buckets(const serve::rate_limiter_options& options) : options_(options)
{
    for (const auto& [name, rules] : options_.tenants)
        add(name, rules, true);
}

rate_buckets::~rate_buckets()
{
    due_.clear();
    idle_.clear();
    for (auto& [name, bucket] : buckets_)
        bucket.waiting.clear();
}

rate_bucket& rate_buckets::add(std::string name, const serve::rate_limit& rules, bool configured)
{
    const auto at = buckets_.try_emplace(std::move(name)).first;
    rate_bucket& b = at->second;
    b.name = &at->first;
    b.rules = rules;
    b.configured = configured;
    // Full since ever.
    b.full_at = wide_integer(std::numeric_limits<std::int64_t>::min()) * rules.rate;
    if (!configured)
        ++unconfigured_;
    enter_set(b);
    return b;
}

rate_bucket* rate_buckets::find_or_add(std::string_view name, time_point now)
{
    if (const auto found = buckets_.find(name); found != buckets_.end())
        return &found->second;
    std::string copy(name);
    if (unconfigured_ >= options_.max_tenants) {
        if (idle_.empty() || idle_.begin()->key > count_of(now))
            return nullptr;
        rate_bucket& b = *idle_.begin();
        leave_set(b);
        buckets_.erase(buckets_.find(*b.name));
        --unconfigured_;
        ++forgotten_;
    }
    return &add(std::move(copy), options_.others, false);
}

error_code rate_buckets::check(const rate_bucket& b, std::uint64_t tokens) const noexcept
{
    if (tokens == 0)
        return op_error(errc::invalid_argument, options_.name, {"tenant ", *b.name, ": tokens is 0"});
    if (tokens > b.rules.burst)
        return op_error(errc::invalid_argument, options_.name,
                        {"tenant ", *b.name, ": tokens is ", tokens, "; its bucket has at most ", b.rules.burst});
    return {};
}

result<serve::rate_decision> rate_buckets::decide(std::string_view name, std::uint64_t tokens, time_point now)
{
    rate_bucket* const b = find_or_add(name, now);
    if (!b) {
        ++all_.refused;
        // If all have waiting requests, nothing is known about the time.
        const auto first =
            idle_.empty() ? wide_integer(options_.others.period.count()) : idle_.begin()->key - count_of(now);
        return serve::rate_decision{.allowed = false, .retry_after = limited(first)};
    }
    if (auto ec = check(*b, tokens))
        return ec;
    leave_set(*b);
    update(*b, now);
    serve::rate_decision d;
    const auto at = available_at(*b, b->waiting_tokens + tokens);
    if (b->waiting.empty() && at <= count_of(now)) {
        d.allowed = true;
        take(*b, tokens, now);
    } else {
        // A request whose tokens are there still waits behind others.
        d.retry_after = std::max(limited(at - count_of(now)), nanoseconds(1));
        ++b->counts.refused;
        ++all_.refused;
    }
    enter_set(*b);
    return d;
}

error_code rate_buckets::offer(rate_waiter& w, std::string_view name, time_point deadline, time_point now)
{
    rate_bucket* const b = find_or_add(name, now);
    if (!b) {
        ++all_.refused;
        return op_error(errc::queue_full, options_.name,
                        {"tenant ", name, " is unknown, and the buckets of max_tenants (", options_.max_tenants,
                         ") others are not full"});
    }
    if (auto ec = check(*b, w.tokens))
        return ec;
    leave_set(*b);
    update(*b, now);
    error_code ec;
    const auto at = available_at(*b, b->waiting_tokens + w.tokens);
    if (deadline <= now || (deadline != time_point::max() && at > count_of(deadline))) {
        ++b->counts.expired;
        ++all_.expired;
        ec = op_error(errc::deadline_exceeded, options_.name,
                      {"tenant ", name, ": the deadline is before the tokens are there, in ",
                       limited(at - count_of(now)).count(), " ns"});
    } else if (b->counts.waiting >= b->rules.max_waiting && (b->counts.waiting > 0 || at > count_of(now))) {
        ++b->counts.refused;
        ++all_.refused;
        ec = op_error(errc::queue_full, options_.name,
                      {"tenant ", name, " has max_waiting (", b->rules.max_waiting, ") waiting requests"});
    } else {
        w.bucket = b;
        b->waiting.push_back(w);
        b->waiting_tokens += w.tokens;
        ++b->counts.waiting;
        ++all_.waiting;
    }
    enter_set(*b);
    return ec;
}

rate_waiter* rate_buckets::next(time_point now) noexcept
{
    if (due_.empty() || due_.begin()->key > count_of(now))
        return nullptr;
    rate_bucket& b = *due_.begin();
    rate_waiter& w = b.waiting.front();
    leave_set(b);
    update(b, now);
    unlink(w);
    take(b, w.tokens, now);
    enter_set(b);
    return &w;
}

void rate_buckets::take(rate_bucket& b, std::uint64_t tokens, time_point now) noexcept
{
    b.full_at += wide_integer(tokens) * b.rules.period.count();
    // More than the bucket had only if the clock has jumped back.
    update(b, now);
    ++b.counts.allowed;
    ++all_.allowed;
}

void rate_buckets::unlink(rate_waiter& w) noexcept
{
    rate_bucket& b = *w.bucket;
    b.waiting.erase(b.waiting.iterator_to(w));
    b.waiting_tokens -= w.tokens;
    --b.counts.waiting;
    --all_.waiting;
}

void rate_buckets::remove(rate_waiter& w, time_point now) noexcept
{
    rate_bucket& b = *w.bucket;
    leave_set(b);
    update(b, now);
    unlink(w);
    ++b.counts.cancelled;
    ++all_.cancelled;
    enter_set(b);
}

rate_waiter* rate_buckets::pop() noexcept
{
    if (due_.empty())
        return nullptr;
    rate_bucket& b = *due_.begin();
    rate_waiter& w = b.waiting.front();
    leave_set(b);
    unlink(w);
    ++b.counts.refused;
    ++all_.refused;
    enter_set(b);
    return &w;
}

time_point rate_buckets::wake_at() const noexcept
{
    if (due_.empty())
        return time_point::max();
    // The largest time is "never"; the wait for it would have no end either way.
    return time_point(std::chrono::duration_cast<time_point::duration>(limited(due_.begin()->key)));
}

std::uint64_t rate_buckets::tokens_in(const rate_bucket& b, time_point now) noexcept
{
    rate_bucket copy;
    copy.rules = b.rules;
    copy.full_at = b.full_at;
    update(copy, now);
    const wide_integer missing = copy.full_at - count_of(now) * b.rules.rate;
    return static_cast<std::uint64_t>((capacity(b) - missing) / b.rules.period.count());
}

void rate_buckets::leave_set(rate_bucket& b) noexcept
{
    if (!b.in_set.is_linked())
        return;
    (b.waiting.empty() ? idle_ : due_).erase(bucket_set::s_iterator_to(b));
}

void rate_buckets::enter_set(rate_bucket& b) noexcept
{
    if (!b.waiting.empty()) {
        b.key = available_at(b, b.waiting.front().tokens);
        due_.insert(b);
    } else if (!b.configured) {
        b.key = divide_up(b.full_at, b.rules.rate);
        idle_.insert(b);
    }
}

} // namespace coaccel::detail
