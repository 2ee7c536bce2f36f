#ifndef COACCEL_CONTEXT_COMPLETION_COMPLETION_SCANNER_HPP
#define COACCEL_CONTEXT_COMPLETION_COMPLETION_SCANNER_HPP

#include "context/completion/duration_estimator.hpp"
#include "context/completion/wait_policy.hpp"
#include "context/faults/fault_monitor.hpp"
#include "context/lanes/lane_set.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// Finds completed requests, and learns from them when others will complete.
template <backend B>
class completion_scanner {
public:
    completion_scanner(B& b, lane_set<B>& lanes, fault_monitor<B>& faults, context_events& events) noexcept
        : backend_(b), lanes_(lanes), faults_(faults), events_(events)
    {}

    /// Reports completed requests in the order of their submission. `polling`: the context polls continuously. Returns
    /// whether any request completed.
    bool poll(clock::time_point now, bool polling)
    {
        std::size_t busy_lanes = 0;
        for (auto& l : lanes_)
            busy_lanes += !l->in_flight.empty();
        look(now, polling);
        // The other request has completed by then, but after its lane was checked.
        if (std::exchange(overtook_, false))
            look(now, polling);
        if (busy_lanes > 1)
            std::ranges::sort(retired_, {}, &request::sequence);
        const bool any = !retired_.empty();
        for (request* r : retired_) {
            r->ended = now;
            events_.finished(*r, r->outcome);
        }
        retired_.clear();
        last_poll_ = now;
        return any;
    }

    /// The expected end of the in-flight request that completes first.
    wait_policy::expected_end expected_end() const noexcept
    {
        wait_policy::expected_end first;
        bool reliable = true;
        for (auto& l : lanes_) {
            if (l->in_flight.empty())
                continue;
            const auto estimate = estimator_.of(l->in_flight.front().kind);
            reliable &= estimate.reliable;
            if (estimate.expected.count() > 0 && l->began() + estimate.expected < first.end)
                first = {l->began() + estimate.expected, estimate.expected};
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
                faults_.failed(passed.error());
                return;
            }
            if (passed.value() == 1 && l->in_flight.front().who)
                learn(*l, now, polling);
            if (passed.value() > 0) {
                l->last_end = now;
                l->overdue = false;
            }
            for (std::size_t n = 0; n < passed.value(); ++n)
                retire(*l);
        }
    }

    /// Called for a request that completed alone: of several that completed since the last poll, the individual times
    /// are unknown.
    void learn(const lane& l, clock::time_point now, bool polling) noexcept
    {
        const bool watched = polling && now - std::max(last_poll_, l.began()) < duration_estimator::attention;
        estimator_.learn(l.in_flight.front().kind, now - l.began(), watched, l.overdue);
    }

    void retire(lane& l)
    {
        const auto f = std::move(l.in_flight.front());
        l.in_flight.pop_front();
        l.commands -= f.commands;
        for (; !l.holds.empty() && l.holds.front().ticket <= f.ticket; l.holds.pop_front())
            overtook_ |= !lanes_.order().passed(l.holds.front().until);
        lanes_.pass({l.id, f.ticket});
        if (!f.who)
            return;
        for (auto& o : f.who->ops)
            if (auto ec = backend_.finish(o); ec && !f.who->outcome)
                f.who->outcome = ec;
        retired_.push_back(f.who);
    }

    B& backend_;
    lane_set<B>& lanes_;
    fault_monitor<B>& faults_;
    context_events& events_;
    std::vector<request*> retired_;
    /// A request on another lane for which a retired one waited has not been retired itself. It must not be reported
    /// later.
    bool overtook_ = false;
    clock::time_point last_poll_{};
    duration_estimator estimator_;
};

} // namespace coaccel::detail

#endif
