#ifndef COACCEL_CONTEXT_ARRIVALS_HPP
#define COACCEL_CONTEXT_ARRIVALS_HPP

#include "context/completion_rule.hpp"
#include "context/end_forecast.hpp"
#include "context/lane_set.hpp"
#include "context/lifetime.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// Finds the requests that have ended, and learns from them when others will.
template <backend B>
class arrivals {
public:
    arrivals(B& b, lane_set<B>& lanes, lifetime<B>& life, context_events& events) noexcept
        : backend_(b), lanes_(lanes), life_(life), events_(events)
    {}

    /// Finishes those that have ended, in the order in which they were submitted. `polling`: somebody means to look all
    /// the time. Answers whether there were any.
    bool sweep(clock::time_point now, bool polling)
    {
        std::size_t busy_lanes = 0;
        for (auto& l : lanes_)
            busy_lanes += !l->flights.empty();
        look(now, polling);
        // An op that waited for another on a second lane must not be seen to end before it. The other has
        // passed by then, but perhaps after its lane was looked at; so every lane is looked at once more.
        if (busy_lanes > 1 && !landed_.empty()) {
            look(now, polling);
            std::ranges::sort(landed_, {}, &request::sequence);
        }
        const bool any = !landed_.empty();
        for (request* r : landed_) {
            r->ended = now;
            events_.finished(*r, r->outcome);
        }
        landed_.clear();
        last_sweep_ = now;
        return any;
    }

    /// Of the one that is going to be the first.
    completion_rule::forecast forecast() const noexcept
    {
        completion_rule::forecast first;
        bool reliable = true;
        for (auto& l : lanes_) {
            if (l->flights.empty())
                continue;
            const auto outlook = forecast_.of(l->flights.front().kind);
            reliable &= outlook.reliable;
            if (outlook.expected.count() > 0 && l->began() + outlook.expected < first.end)
                first = {l->began() + outlook.expected, outlook.expected};
        }
        first.reliable = reliable;
        return first;
    }

private:
    using lane = detail::lane<B>;

    void look(clock::time_point now, bool polling)
    {
        for (auto& l : lanes_) {
            auto passed = l->count_passed(backend_);
            if (!passed) {
                life_.failed(passed.error());
                return;
            }
            if (passed.value() == 1 && l->flights.front().who)
                learn(*l, now, polling);
            if (passed.value() > 0) {
                l->last_landing = now;
                l->overdue = false;
            }
            for (std::size_t n = 0; n < passed.value(); ++n)
                land(*l);
        }
    }

    /// From one that landed alone: of several, nobody knows when.
    void learn(const lane& l, clock::time_point now, bool polling) noexcept
    {
        const bool watched = polling && now - std::max(last_sweep_, l.began()) < end_forecast::attention;
        forecast_.learn(l.flights.front().kind, now - l.began(), watched, l.overdue);
    }

    void land(lane& l)
    {
        const auto f = std::move(l.flights.front());
        l.flights.pop_front();
        l.commands -= f.commands;
        while (!l.holds.empty() && l.holds.front().ticket <= f.ticket)
            l.holds.pop_front();
        lanes_.pass({l.id, f.ticket});
        if (!f.who)
            return;
        for (auto& o : f.who->ops)
            if (auto ec = backend_.finish(o); ec && !f.who->outcome)
                f.who->outcome = ec;
        landed_.push_back(f.who);
    }

    B& backend_;
    lane_set<B>& lanes_;
    lifetime<B>& life_;
    context_events& events_;
    std::vector<request*> landed_;
    clock::time_point last_sweep_{};
    end_forecast forecast_;
};

} // namespace coaccel::detail

#endif
