#ifndef COACCEL_CONTEXT_LANES_LANE_SET_HPP
#define COACCEL_CONTEXT_LANES_LANE_SET_HPP

#include "context/lanes/choose_chained.hpp"
#include "context/lanes/lane.hpp"
#include "context/lanes/lane_selector.hpp"

#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// The lanes of a context, each created on first use, and the ordering between them.
///
/// Errors: those of the backend.
template <backend B>
class lane_set {
public:
    using lane = detail::lane<B>;

    lane_set(B& b, context_events& events, lane_policy policy)
        : backend_(b), events_(events), choice_(policy), lane_of_key_(choice_.keys(), no_lane)
    {}

    /// errc::invalid_argument if the requested lane or priority does not exist.
    static error_code check(const exec_options& options) noexcept { return lane_selector::check(options); }

    /// The lane for a request whose first op is from this library and which waits for these points. Precondition:
    /// check() accepts the options.
    result<lane*> choose(library lib, const exec_options& options, const frontier& waits)
    {
        const std::size_t key =
            choice_.is_chained(options) ? chained_key(options.priority, waits) : choice_.choose(lib, options);
        if (lane_of_key_[key] == no_lane) {
            BOOST_OUTCOME_TRY(auto* made, add(lane_selector::priority_of(key)));
            lane_of_key_[key] = made->id;
        }
        return all_[static_cast<std::size_t>(lane_of_key_[key])].get();
    }

    /// The lane for allocations, separate so that no op delays them.
    result<lane*> for_allocations()
    {
        if (!allocations_) {
            BOOST_OUTCOME_TRY(allocations_, add(priority::high));
        }
        return allocations_;
    }

    lane& operator[](lane_id id) noexcept { return *all_[id]; }
    const lane& operator[](lane_id id) const noexcept { return *all_[id]; }
    auto begin() const noexcept { return all_.begin(); }
    auto end() const noexcept { return all_.end(); }

    bool busy() const noexcept
    {
        return std::ranges::any_of(all_, [](const auto& l) { return l->busy(); });
    }

    /// The progress of each lane.
    const lane_clock& order() const noexcept { return order_; }
    void pass(point p) noexcept { order_.pass(p); }

    /// Whether all work up to p is on its stream, so that other streams can wait for it.
    bool is_on_stream(point p) const noexcept { return all_[p.lane]->last_on_stream >= p.ticket; }

    /// Whether the next work on `l` must wait for p. If so, the wait counts as done from now on.
    bool must_wait(const lane& l, point p) { return order_.must_wait(l.id, p); }

    /// Whether the oldest in-flight request of `l` waits for another lane.
    bool is_held_back(const lane& l) const noexcept
    {
        return std::ranges::any_of(
            l.holds, [&](const auto& h) { return h.ticket <= l.in_flight.front().ticket && !order_.passed(h.until); });
    }

    /// Makes the next work on `l`, the request with this ticket, wait for p.
    error_code hold_back(lane& l, std::uint64_t ticket, point p)
    {
        lane& other = *all_[p.lane];
        l.note_command();
        if (&other != allocations_) {
            l.holds.push_back({ticket, p});
            return backend_.wait(l.work, other.end_of(p.ticket));
        }
        // Only the first op that uses an allocation waits for it, so the event is recorded here, once for all
        // allocations so far.
        (void)order_.must_wait(l.id, {p.lane, other.last_ticket});
        if (auto ec = backend_.record(*other.watched, other.work))
            return ec;
        return backend_.wait(l.work, *other.watched);
    }

private:
    static constexpr int no_lane = -1;

    std::size_t chained_key(priority p, const frontier& waits) noexcept
    {
        boost::container::static_vector<chain_lane, lane_policy::max_pooled> group;
        for (std::size_t i = 0; i < choice_.policy_lanes(); ++i) {
            chain_lane& candidate = group.emplace_back();
            if (const int id = lane_of_key_[lane_selector::key_of(i, p)]; id != no_lane) {
                const lane& l = *all_[static_cast<std::size_t>(id)];
                candidate = {{l.id, l.last_ticket}, l.load()};
            }
        }
        return lane_selector::key_of(choose_chained(group, waits), p);
    }

    result<lane*> add(priority p)
    {
        BOOST_OUTCOME_TRY(auto stream, backend_.make_stream(p));
        return all_.emplace_back(std::make_unique<lane>(std::move(stream), order_.add_lane(), events_)).get();
    }

    B& backend_;
    context_events& events_;
    lane_selector choice_;
    lane_clock order_;
    std::vector<int> lane_of_key_;
    std::vector<std::unique_ptr<lane>> all_;
    lane* allocations_ = nullptr;
};

} // namespace coaccel::detail

#endif
