#ifndef COACCEL_SERVE_FAIR_QUEUE_HPP
#define COACCEL_SERVE_FAIR_QUEUE_HPP

#include "serve/wide_integer.hpp"

#include <coaccel/serve/detail/fair_request.hpp>
#include <coaccel/serve/fair_share_options.hpp>
#include <coaccel/serve/fair_share_stats.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace coaccel::detail {

/// A tenant of a fair_queue, which alone uses its members.
struct fair_tenant {
    using request_list =
        boost::intrusive::list<fair_request,
                               boost::intrusive::member_hook<fair_request, list_hook, &fair_request::in_queue>,
                               boost::intrusive::constant_time_size<false>>;

    serve::tenant_options rules;
    /// The minimum share in millionths.
    std::uint64_t minimum = 0;
    bool configured = false;
    const std::string* name = nullptr;

    request_list waiting;
    /// The virtual time that ended turns have used.
    wide_integer used = 0;
    /// The same by the clock of the minimum shares.
    wide_integer owed_from = 0;
    /// The sum of the estimates of its running turns, in nanoseconds.
    wide_integer in_flight = 0;
    std::int64_t estimate = 1;
    bool measured = false;
    serve::turn_counts counts;

    // The keys of the sets below. They change only outside of these sets.
    wide_integer key = 0;
    wide_integer minimum_key = 0;
    set_hook in_ready;
    set_hook in_minimum;
    set_hook in_idle;
};

/// Weighted fair queueing by virtual time, where the cost of a request is known only when it has ended. Decides which
/// request gets the next turn. It has no clock, no lock, and starts nothing itself.
///
/// Each tenant has a virtual time: the device time that it used, divided by its weight. The tenant with the smallest
/// one is next. While a turn runs, its estimate counts as used; when it ends, what it really used. So a wrong estimate
/// changes the order for the length of a turn, and no share.
///
/// The virtual time of the queue is the largest `used` of a tenant that was next. Estimates are no part of it, because
/// a tenant that exaggerates could otherwise move it into the future, and with it the place where others enter. A
/// tenant that enters the set of those who are ready has at least this time less its burst: what it did not use while
/// it had no requests, or could have no further turns, is lost except for the burst.
///
/// Minimum shares have a second clock for each tenant: its device time divided by its share, against the device time of
/// all tenants. A tenant that is behind on this clock is next. Such a turn moves its virtual time at most to one
/// request ahead of the others, because what it was guaranteed must not count as a debt later.
///
/// No request waits for ever: each turn that precedes a waiting request moves a virtual time towards its own or spends
/// a burst, which was saved up while the waiting tenant was served; minimum shares take at most nine tenths; and the
/// number of tenants is bounded, because only those are forgotten that owe nothing.
///
/// Each function except for_each takes O(log tenants + log requests) time.
class fair_queue {
public:
    using time_point = fair_request::time_point;
    using duration = std::chrono::nanoseconds;

    /// Preconditions: the options are valid.
    explicit fair_queue(const serve::fair_share_options& options);
    fair_queue(const fair_queue&) = delete;
    fair_queue& operator=(const fair_queue&) = delete;
    ~fair_queue();

    /// Accepts a request, or returns why not: errc::queue_full, or errc::deadline_exceeded if its turn would come too
    /// late even if its tenant had the device for itself.
    [[nodiscard]] error_code offer(fair_request& r, std::string_view tenant, time_point now);

    /// The request that gets a turn, removed; its turn counts as running. Null: none may start.
    [[nodiscard]] fair_request* next() noexcept;

    /// A turn has ended. A negative time counts as zero, and more than `longest` as that.
    void finish(const fair_turn& turn, duration used) noexcept;

    /// Why a waiting request is removed.
    enum class leaving : std::uint8_t { cancelled, expired, refused };
    /// Removes a waiting request.
    void remove(fair_request& r, leaving why) noexcept;
    /// A waiting request whose deadline has passed, removed; null: there is none.
    [[nodiscard]] fair_request* expired(time_point now) noexcept;
    /// The oldest waiting request, removed and counted as refused; null: there is none.
    [[nodiscard]] fair_request* pop() noexcept;
    /// When to call `expired` again; time_point::max(): never.
    time_point wake_at() const noexcept;
    /// Counts a request that was never offered.
    void count_refused() noexcept { ++all_.refused; }

    std::uint64_t queued() const noexcept { return all_.queued; }
    std::uint64_t running() const noexcept { return all_.running; }
    const serve::turn_counts& all() const noexcept { return all_; }
    std::uint64_t forgotten() const noexcept { return forgotten_; }
    /// Whether `next` would return a request.
    bool may_start() const noexcept { return !ready_.empty() && all_.running < options_.max_running; }
    const serve::fair_share_options& options() const noexcept { return options_; }

    /// Calls f(tenant) for each remembered tenant, by name.
    template <class Function>
    void for_each(Function f) const
    {
        for (const auto& [name, tenant] : tenants_)
            f(tenant);
    }

    /// A turn of 36 years would be charged as this: products with it fit into a wide_integer.
    static constexpr std::int64_t longest = std::int64_t(1) << 60;

private:
    template <wide_integer fair_tenant::* Key>
    struct before {
        bool operator()(const fair_tenant& a, const fair_tenant& b) const noexcept { return a.*Key < b.*Key; }
    };

    template <set_hook fair_tenant::* Hook, wide_integer fair_tenant::* Key>
    using tenant_set =
        boost::intrusive::multiset<fair_tenant, boost::intrusive::member_hook<fair_tenant, set_hook, Hook>,
                                   boost::intrusive::compare<before<Key>>, boost::intrusive::constant_time_size<false>>;

    struct expires_before {
        bool operator()(const fair_request& a, const fair_request& b) const noexcept { return a.deadline < b.deadline; }
    };

    using deadline_set = boost::intrusive::multiset<
        fair_request, boost::intrusive::member_hook<fair_request, set_hook, &fair_request::by_deadline>,
        boost::intrusive::compare<expires_before>, boost::intrusive::constant_time_size<false>>;

    fair_tenant* find_or_add(std::string_view name);
    fair_tenant& add(std::string name, const serve::tenant_options& rules, bool configured);
    bool forget_one() noexcept;
    static bool can_start(const fair_tenant& t) noexcept
    {
        return !t.waiting.empty() && t.counts.running < t.rules.max_running;
    }
    void leave_sets(fair_tenant& t) noexcept;
    void enter_sets(fair_tenant& t) noexcept;
    void catch_up(fair_tenant& t, std::int64_t slack) noexcept;
    void settle(fair_tenant& t, std::int64_t used, bool guaranteed) noexcept;
    void unlink(fair_request& r) noexcept;

    const serve::fair_share_options options_;
    std::map<std::string, fair_tenant, std::less<>> tenants_;
    std::uint64_t unconfigured_ = 0;
    /// Tenants that have waiting requests and may have a further turn.
    tenant_set<&fair_tenant::in_ready, &fair_tenant::key> ready_;
    /// Those of them with a minimum share.
    tenant_set<&fair_tenant::in_minimum, &fair_tenant::minimum_key> minimum_;
    /// Tenants that have no requests and may be forgotten when they owe nothing.
    tenant_set<&fair_tenant::in_idle, &fair_tenant::used> idle_;
    deadline_set deadlines_;
    /// All that wait, in the order of arrival.
    boost::intrusive::list<fair_request, boost::intrusive::member_hook<fair_request, list_hook, &fair_request::in_all>,
                           boost::intrusive::constant_time_size<false>>
        waiting_;
    /// The virtual time of the queue.
    wide_integer now_ = 0;
    /// The largest `used` of all tenants.
    wide_integer latest_ = 0;
    /// The device time of all ended turns, in the unit of owed_from.
    wide_integer total_ = 0;
    serve::turn_counts all_;
    std::uint64_t forgotten_ = 0;
};

} // namespace coaccel::detail

#endif
