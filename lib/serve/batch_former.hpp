#ifndef COACCEL_SERVE_BATCH_FORMER_HPP
#define COACCEL_SERVE_BATCH_FORMER_HPP

#include "serve/run_estimates.hpp"

#include <coaccel/serve/batcher_options.hpp>
#include <coaccel/serve/detail/batch_request.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <list>
#include <vector>

namespace coaccel::detail {

/// What a batch_former needs to know, in checked form.
struct batch_rules {
    /// In messages.
    std::string name;
    std::uint32_t max_rows = 64;
    /// The sizes of the plans, ascending; the last is at least max_rows. Empty: every size is as good as another.
    std::vector<std::uint32_t> sizes;
    /// Ascending.
    std::vector<std::uint32_t> preferred;
    std::chrono::nanoseconds max_delay{};
    serve::delay_rule delay = serve::delay_rule::adaptive;
    double max_padding = 0.5;
    std::uint32_t max_in_flight = 1;
    std::array<std::uint64_t, priority_count> max_queued{};
    std::uint64_t max_waiting = 0;
    serve::completion_order order = serve::completion_order::any;
};

/// Decides which requests form a batch, and when it starts. It has no clock and starts nothing itself.
///
/// Requests wait in groups, one for each shape. A group may start if its batch is full or has reached a preferred size,
/// or if one of its requests has waited long enough; with delay_rule::adaptive also if nothing runs. Of those that may
/// start, the one with the most urgent request is next, then the one with the oldest.
///
/// If the order of arrival is kept, a group is a sequence of requests of one shape that arrived one after another, and
/// only the first group may start.
class batch_former {
public:
    using time_point = batch_request::time_point;
    using duration = std::chrono::nanoseconds;

    explicit batch_former(batch_rules rules);
    batch_former(const batch_former&) = delete;
    batch_former& operator=(const batch_former&) = delete;
    ~batch_former();

    /// Accepts a request, or returns why not: errc::queue_full, or errc::deadline_exceeded for a request that would
    /// end too late. Preconditions: it has at most max_rows rows.
    [[nodiscard]] error_code offer(batch_request& r, time_point now);

    /// Puts a request that `next` has returned back to its place in the order of arrival, because its batch could not
    /// run where it was started.
    void put_back(batch_request& r);

    /// No request follows: batches do not wait for others any more.
    void close() noexcept { closed_ = true; }

    /// Removes a waiting request.
    void remove(batch_request& r) noexcept;

    /// Moves the requests of the next batch to the end of `out`; the batch counts as running. False: none may start.
    /// `may_start`: whether there is room for a batch of the shape now.
    template <class MayStart>
    [[nodiscard]] bool next(time_point now, std::vector<batch_request*>& out, MayStart may_start)
    {
        group* g = choose(now, may_start);
        if (g)
            take(*g, out);
        return g != nullptr;
    }

    /// A batch has ended.
    void ended() noexcept { --running_; }
    /// How long it took. `rows`: the size of its plan, or of the batch if there is no plan; then similar sizes count as
    /// one.
    void measured(std::uint64_t shape, std::uint32_t rows, duration run)
    {
        estimates_.add(shape, rules_.sizes.empty() ? std::bit_ceil(rows) : rows, run);
    }

    /// A waiting request whose deadline has passed, removed; null: there is none.
    [[nodiscard]] batch_request* expired(time_point now) noexcept;
    /// Any waiting request, removed; null: there is none.
    [[nodiscard]] batch_request* pop() noexcept;

    /// When to call `next` and `expired` again, although nothing happens before; time_point::max(): never. Called when
    /// `next` has returned false at this time, so batches that are due already wait for something else.
    time_point wake_at(time_point now) const noexcept;

    std::uint32_t running() const noexcept { return running_; }
    std::uint64_t queued() const noexcept { return queued_[0] + queued_[1] + queued_[2]; }
    std::uint64_t queued(priority p) const noexcept { return queued_[static_cast<std::size_t>(p)]; }

private:
    using request_list =
        boost::intrusive::list<batch_request,
                               boost::intrusive::member_hook<batch_request, list_hook, &batch_request::in_group>,
                               boost::intrusive::constant_time_size<false>>;

    struct expires_before {
        bool operator()(const batch_request& a, const batch_request& b) const noexcept
        {
            return a.options.deadline < b.options.deadline;
        }
    };

    using deadline_set = boost::intrusive::multiset<
        batch_request, boost::intrusive::member_hook<batch_request, set_hook, &batch_request::by_deadline>,
        boost::intrusive::compare<expires_before>, boost::intrusive::constant_time_size<false>>;
    using group_deadline_set = boost::intrusive::multiset<
        batch_request, boost::intrusive::member_hook<batch_request, set_hook, &batch_request::in_group_by_deadline>,
        boost::intrusive::compare<expires_before>, boost::intrusive::constant_time_size<false>>;

    struct group {
        std::uint64_t shape = 0;
        /// Its place in the list of groups.
        std::list<group>::iterator here;
        /// By level: the most urgent first.
        std::array<request_list, priority_count> waiting;
        std::array<std::uint64_t, priority_count> level_rows{};
        group_deadline_set deadlines;

        std::uint64_t rows() const noexcept { return level_rows[0] + level_rows[1] + level_rows[2]; }
        const batch_request& first() const noexcept;
        const batch_request& oldest() const noexcept;
    };

    bool keeps_order() const noexcept { return rules_.order == serve::completion_order::arrival; }
    priority priority_of(const batch_request& r) const noexcept
    {
        return keeps_order() ? priority::normal : r.options.priority;
    }
    std::size_t level_of(const batch_request& r) const noexcept
    {
        return priority_count - 1 - static_cast<std::size_t>(priority_of(r));
    }

    enum class place : std::uint8_t { front, back };

    group& group_for(const batch_request& r, place where);
    group& add_group(std::uint64_t shape, place where);
    void add(batch_request& r, place where);
    void erase(group& g) noexcept;
    void unlink(group& g, std::size_t level, batch_request& r) noexcept;
    bool is_full(const group& g) const noexcept;
    bool is_due(const group& g, time_point now) const noexcept;
    /// When its oldest request has waited long enough, or the batch must start because of a deadline.
    time_point due_time(const group& g) const noexcept;
    std::uint32_t rows_to_take(const group& g) const noexcept;
    void take(group& g, std::vector<batch_request*>& out);
    duration wait_before(const batch_request& r) const noexcept;
    static bool is_before(const group& a, const group& b, const batch_former& f) noexcept;

    template <class MayStart>
    group* choose(time_point now, MayStart& may_start)
    {
        if (running_ >= rules_.max_in_flight)
            return nullptr;
        const bool at_once = closed_ || (rules_.delay == serve::delay_rule::adaptive && running_ == 0);
        group* best = nullptr;
        for (group& g : groups_) {
            if ((at_once || is_full(g) || is_due(g, now)) && (!best || is_before(g, *best, *this)) &&
                may_start(g.shape))
                best = &g;
            if (keeps_order())
                break;
        }
        return best;
    }

    const batch_rules rules_;
    run_estimates estimates_;
    /// In the order in which they were made.
    std::list<group> groups_;
    boost::unordered_flat_map<std::uint64_t, std::list<group>::iterator> by_shape_;
    /// Where the last request was added, unless it is gone: the next one often has the same shape.
    group* recent_ = nullptr;
    deadline_set deadlines_;
    std::array<std::uint64_t, priority_count> queued_{};
    /// All rows that wait, by level.
    std::array<std::uint64_t, priority_count> rows_{};
    std::uint64_t arrivals_ = 0;
    std::uint32_t running_ = 0;
    bool closed_ = false;
};

} // namespace coaccel::detail

#endif
