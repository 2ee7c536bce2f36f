#ifndef COACCEL_SERVE_RATE_BUCKETS_HPP
#define COACCEL_SERVE_RATE_BUCKETS_HPP

#include "serve/wide_integer.hpp"

#include <coaccel/core/result.hpp>
#include <coaccel/serve/detail/rate_waiter.hpp>
#include <coaccel/serve/rate_limiter_options.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace coaccel::detail {

/// The bucket of a tenant.
struct rate_bucket {
    using waiter_list =
        boost::intrusive::list<rate_waiter,
                               boost::intrusive::member_hook<rate_waiter, list_hook, &rate_waiter::in_queue>,
                               boost::intrusive::constant_time_size<false>>;

    serve::rate_limit rules;
    bool configured = false;
    const std::string* name = nullptr;
    /// When the bucket is full, in nanoseconds divided by the rate. The unit makes everything an integer: a nanosecond
    /// has `rate` units, and a token has `period` units. So nothing is rounded, and nothing drifts.
    wide_integer full_at = 0;
    waiter_list waiting;
    /// The sum of the tokens of those.
    wide_integer waiting_tokens = 0;
    serve::rate_counts counts;

    /// When its first waiting request gets its tokens or, if none waits, when the bucket is full; in nanoseconds, and
    /// the key of the set that it is in.
    wide_integer key = 0;
    set_hook in_set;
};

/// Token buckets: decides whether a request may go on, or when it may. It has no clock and no lock.
///
/// Requests that wait get their tokens in the order of arrival, and none overtakes them. A bucket that is full has no
/// history, so it can be forgotten without a change for anybody.
///
/// If the clock jumps ahead, buckets become full, at most. If it jumps back, they become empty, at most.
///
/// Each function except for_each takes O(log tenants) time.
class rate_buckets {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Preconditions: the options are valid.
    explicit rate_buckets(const serve::rate_limiter_options& options);
    rate_buckets(const rate_buckets&) = delete;
    rate_buckets& operator=(const rate_buckets&) = delete;
    ~rate_buckets();

    /// Takes the tokens, or says when they are there. Errors: errc::invalid_argument if the bucket never has as many.
    [[nodiscard]] result<serve::rate_decision> decide(std::string_view tenant, std::uint64_t tokens, time_point now);

    /// Lets a request wait for its tokens, or returns why not: errc::invalid_argument as above, errc::queue_full, or
    /// errc::deadline_exceeded if the tokens come too late. Call `next` afterwards.
    [[nodiscard]] error_code offer(rate_waiter& w, std::string_view tenant, time_point deadline, time_point now);

    /// A request that gets its tokens, removed; null: there is none at this time.
    [[nodiscard]] rate_waiter* next(time_point now) noexcept;
    /// Removes a waiting request that is cancelled. Call `next` afterwards.
    void remove(rate_waiter& w, time_point now) noexcept;
    /// Any waiting request, removed and counted as refused; null: there is none.
    [[nodiscard]] rate_waiter* pop() noexcept;
    /// When to call `next` again, although nothing happens before; time_point::max(): never.
    time_point wake_at() const noexcept;
    /// Counts a request that was never offered.
    void count_refused() noexcept { ++all_.refused; }

    const serve::rate_counts& all() const noexcept { return all_; }
    std::uint64_t forgotten() const noexcept { return forgotten_; }
    const serve::rate_limiter_options& options() const noexcept { return options_; }
    /// Whole tokens in the bucket.
    static std::uint64_t tokens_in(const rate_bucket& b, time_point now) noexcept;

    /// Calls f(bucket) for each remembered tenant, by name.
    template <class Function>
    void for_each(Function f) const
    {
        for (const auto& [name, bucket] : buckets_)
            f(bucket);
    }

private:
    struct before {
        bool operator()(const rate_bucket& a, const rate_bucket& b) const noexcept { return a.key < b.key; }
    };

    using bucket_set =
        boost::intrusive::multiset<rate_bucket,
                                   boost::intrusive::member_hook<rate_bucket, set_hook, &rate_bucket::in_set>,
                                   boost::intrusive::compare<before>, boost::intrusive::constant_time_size<false>>;

    rate_bucket* find_or_add(std::string_view name, time_point now);
    rate_bucket& add(std::string name, const serve::rate_limit& rules, bool configured);
    error_code check(const rate_bucket& b, std::uint64_t tokens) const noexcept;
    void leave_set(rate_bucket& b) noexcept;
    void enter_set(rate_bucket& b) noexcept;
    void take(rate_bucket& b, std::uint64_t tokens, time_point now) noexcept;
    void unlink(rate_waiter& w) noexcept;

    const serve::rate_limiter_options options_;
    std::map<std::string, rate_bucket, std::less<>> buckets_;
    std::uint64_t unconfigured_ = 0;
    /// Buckets with waiting requests.
    bucket_set due_;
    /// Buckets without, that may be forgotten when they are full.
    bucket_set idle_;
    serve::rate_counts all_;
    std::uint64_t forgotten_ = 0;
};

} // namespace coaccel::detail

#endif
