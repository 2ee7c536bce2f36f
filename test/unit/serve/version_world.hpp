#ifndef COACCEL_TEST_UNIT_SERVE_VERSION_WORLD_HPP
#define COACCEL_TEST_UNIT_SERVE_VERSION_WORLD_HPP

#include "serve/version_switch.hpp"

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// Carries out the actions of a version_switch as the shell does: in turns, before each of which several events can
/// happen. Knows by itself which version must be current, and checks after each event what must always hold. A
/// violation is an exception with the events so far. Copyable, so that every continuation of a state can be tried.
class version_world {
public:
    using machine = coaccel::detail::version_switch;
    using number = machine::number;
    using state = coaccel::serve::version_state;
    using kind = machine::action_kind;
    using mode = coaccel::shutdown;

    enum class event {
        turn, // all actions are carried out
        load,
        loaded,
        load_fails,
        warmed_up,
        warm_up_fails,
        cancel_newest,
        cancel_oldest,
        request,
        answer_oldest,
        fail_newest,
        roll_back,
        confirm,
        closes,
        time_passes,
        drain,
        abandon,
    };
    static constexpr int event_count = static_cast<int>(event::abandon) + 1;

    explicit version_world(const coaccel::serve::hot_swap_options& o) : m(o), keeps(o.confirm_after.count() > 0) {}

    /// False: this event cannot happen now.
    bool apply(event e)
    {
        if (!try_apply(e))
            return false;
        trace += std::string(trace.empty() ? "" : ", ") + name_of(e);
        check();
        return true;
    }

    /// Everything that was begun ends, after a stop. Then nothing may be left.
    void finish()
    {
        begin_stop(mode::drain);
        carry_out();
        for (int step = 0; step < 1000; ++step) {
            if (!requests.empty())
                end_request(0, machine::outcome::completed);
            else if (!try_apply(event::closes) && !try_apply(event::loaded) && !try_apply(event::warmed_up))
                break;
            carry_out();
            check();
        }
        demand(stops == 1, "stopped was reported " + std::to_string(stops) + " times");
        for (const auto& [n, v] : versions)
            demand(v.released, "version " + std::to_string(n) + " is never released");
        demand(m.versions().empty(), "a version is left");
        demand(m.next_time() == machine::time_point::max(), "a time limit is left");
    }

    machine m;
    machine::time_point now{std::chrono::seconds(1)};
    std::string trace;
    std::vector<number> requests;

    enum class function { none, load, warm_up };

    struct version {
        function works = function::none; // the function that is being called
        bool cancelled = false;          // this function
        bool exists = false;             // there is something to shut down
        bool answered = false;           // the caller of the load
        bool served = false;             // it was switched to
        bool gone = false;               // it must not get requests again
        bool released = false;
        int closing = 0; // shutdowns in progress
        bool closed = false;
    };
    std::map<number, version> versions;
    number current = 0;
    number previous = 0;
    int stops = 0;
    int rollbacks = 0;
    bool stopping = false;
    bool keeps;

private:
    [[noreturn]] void fail(const std::string& what) const { throw std::logic_error(what + " after: " + trace); }

    void demand(bool holds, const std::string& what) const
    {
        if (!holds)
            fail(what);
    }

    static const char* name_of(event e)
    {
        constexpr const char* names[] = {"turn",          "load",       "loaded",     "load_fails", "warmed_up",
                                         "warm_up_fails", "cancel new", "cancel old", "request",    "answer_oldest",
                                         "fail_newest",   "roll_back",  "confirm",    "closes",     "time_passes",
                                         "drain",         "abandon"};
        return names[static_cast<int>(e)];
    }

    bool is_in(number n, state s) const
    {
        for (const auto& v : m.versions())
            if (v.id == n)
                return v.state == s;
        return false;
    }

    /// The oldest version whose function is being called.
    number calls(function f) const
    {
        for (const auto& [n, v] : versions)
            if (v.works == f)
                return n;
        return 0;
    }

    // What must happen to the current and the previous version.

    void leave(number& n)
    {
        if (n != 0)
            versions[n].gone = true;
        n = 0;
    }

    void expect_switch(number n)
    {
        leave(previous);
        if (keeps)
            previous = current;
        else
            leave(current);
        current = n;
        versions[n].served = true;
    }

    void expect_rollback()
    {
        leave(current);
        std::swap(current, previous);
    }

    void begin_stop(mode how)
    {
        stopping = true;
        leave(current);
        leave(previous);
        m.stop(how, now);
    }

    bool cancel(bool newest)
    {
        number found = 0;
        for (const auto& v : m.versions())
            if (v.state <= state::warming_up && (newest || found == 0))
                found = v.id;
        if (found != 0)
            demand(m.cancel(found, now), "a load cannot be cancelled");
        return found != 0;
    }

    void end_request(std::size_t i, machine::outcome how)
    {
        const number n = requests[i];
        demand(!versions[n].released, "a version with a request was released");
        requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(i));
        const number before = m.current();
        m.ended(n, how, now);
        if (m.current() != before) {
            demand(n == before && how == machine::outcome::failed, "the rule fired for another version");
            expect_rollback();
        }
    }

    bool try_apply(event e)
    {
        switch (e) {
        case event::turn:
            if (!m.has_actions())
                return false;
            carry_out();
            return true;
        case event::load: {
            const number n = versions.empty() ? 1 : versions.rbegin()->first + 1;
            const auto answer = m.load(n, now);
            demand((answer == machine::admission::stopped) == stopping, "a load after a stop");
            if (answer == machine::admission::accepted)
                versions[n];
            return answer == machine::admission::accepted;
        }
        case event::loaded:
        case event::load_fails: {
            const number n = calls(function::load);
            if (n == 0)
                return false;
            version& v = versions[n];
            v.works = function::none;
            const bool wanted = is_in(n, state::loading);
            demand(m.loaded(n, e == event::loaded, now) == wanted,
                   wanted ? "a wanted version was dropped" : "an unwanted version was accepted");
            v.exists = wanted && e == event::loaded;
            return true;
        }
        case event::warmed_up:
        case event::warm_up_fails: {
            const number n = calls(function::warm_up);
            if (n == 0)
                return false;
            versions[n].works = function::none;
            if (e == event::warmed_up && is_in(n, state::warming_up))
                expect_switch(n);
            m.warmed_up(n, e == event::warmed_up, now);
            return true;
        }
        case event::cancel_newest: return cancel(true);
        case event::cancel_oldest: return cancel(false);
        case event::request: {
            const number n = m.take();
            if (n == 0)
                return false;
            demand(!stopping, "a request after a stop");
            demand(versions[n].served && !versions[n].gone, "a request for a version that must not get one");
            requests.push_back(n);
            return true;
        }
        case event::answer_oldest:
            if (requests.empty())
                return false;
            end_request(0, machine::outcome::completed);
            return true;
        case event::fail_newest:
            if (requests.empty())
                return false;
            end_request(requests.size() - 1, machine::outcome::failed);
            return true;
        case event::roll_back:
            if (!m.roll_back(current, now))
                return false;
            demand(previous != 0, "a rollback without a previous version");
            expect_rollback();
            return true;
        case event::confirm:
            if (!m.confirm(0, now))
                return false;
            demand(previous != 0, "a confirmation without a previous version");
            leave(previous);
            return true;
        case event::closes:
            for (auto& [n, v] : versions)
                if (v.closing > 0) {
                    --v.closing;
                    m.closed(n, now);
                    return true;
                }
            return false;
        case event::time_passes:
            if (m.next_time() == machine::time_point::max())
                return false;
            now = m.next_time();
            m.advance(now);
            demand(m.next_time() > now, "a time limit has no effect");
            if (m.previous() == 0)
                leave(previous);
            return true;
        case event::drain:
        case event::abandon:
            if (stopping && e == event::drain)
                return false;
            begin_stop(e == event::drain ? mode::drain : mode::abandon);
            return true;
        }
        return false;
    }

    void carry_out()
    {
        while (const auto a = m.next_action()) {
            if (a->what == kind::stopped) {
                ++stops;
                continue;
            }
            demand(versions.contains(a->version), "an action for an unknown version");
            version& v = versions[a->version];
            demand(!v.released, "an action for a version that was released");
            switch (a->what) {
            case kind::load:
            case kind::warm_up:
                demand(v.works == function::none, "two functions of one version at the same time");
                demand(!v.answered, "a load that has ended goes on");
                demand((a->what == kind::warm_up) == v.exists, "a warm-up before the load, or a load after it");
                v.works = a->what == kind::load ? function::load : function::warm_up;
                break;
            case kind::cancel_work: v.cancelled = true; break;
            case kind::load_ended:
                demand(!v.answered, "a load was answered twice");
                v.answered = true;
                demand(v.works == function::none || v.cancelled, "a load was answered while its function runs");
                demand((a->end == machine::load_end::switched) == v.served, "a load was answered wrongly");
                break;
            case kind::rolled_back:
                demand(v.gone, "a version was rolled back that answers requests");
                ++rollbacks;
                break;
            case kind::confirmed: demand(v.served, "a version was confirmed that never answered"); break;
            case kind::close:
                demand(v.exists, "what does not exist was shut down");
                demand(v.gone || !v.served, "a version was shut down that answers requests");
                demand(a->mode == mode::abandon || in_flight(a->version) == 0, "a drain with requests in flight");
                ++v.closing;
                break;
            case kind::overdue: break;
            case kind::closed:
                demand(!v.closed, "closed twice");
                v.closed = true;
                break;
            case kind::release:
                demand(in_flight(a->version) == 0, "released with requests in flight");
                demand(v.closed == v.exists, "released without a shutdown");
                demand(v.answered, "released before its load was answered");
                v.released = true;
                // A shutdown that has not ended by then is ignored.
                v.closing = 0;
                break;
            case kind::stopped: break;
            }
        }
    }

    std::uint64_t in_flight(number n) const
    {
        std::uint64_t count = 0;
        for (const number r : requests)
            count += r == n;
        return count;
    }

    void check()
    {
        int working = 0;
        for (const auto& [n, v] : versions)
            working += v.works != function::none && !v.cancelled;
        demand(working <= 1, "two loads at the same time");
        for (const auto& v : m.versions()) {
            demand(v.in_flight == in_flight(v.id), "requests are counted wrong");
            demand(!versions[v.id].released, "a released version is known");
        }
        demand(m.current() == current, "a wrong current version");
        demand(m.previous() == previous, "a wrong previous version");
        demand(current == 0 || (versions[current].served && !versions[current].gone), "a version came back");
    }
};

} // namespace test

#endif
