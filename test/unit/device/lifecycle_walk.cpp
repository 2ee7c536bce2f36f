#include "device/lifecycle.hpp"

#include <doctest/doctest.h>

#include <utility>

namespace test_device_lifecycle_walk {

namespace {

using namespace coaccel;
using detail::lifecycle;
using command = lifecycle::command;

const error_code dead = errc::context_lost;
const error_code refused = errc::start_failed;

/// A device and all possible sequences of a limited number of events.
struct world {
    enum class event : std::uint8_t {
        replace,
        condemned,
        lost,
        lost_excused,
        idle_turn,
        busy_turn,
        gone,
        created,
        refused,
        due,
        revive,
        stop,
        abandon,
        count
    };

    static restart_policy policy()
    {
        restart_policy p;
        p.max_restarts = 2;
        p.jitter = 0;
        return p;
    }

    void obey(lifecycle::step s)
    {
        switch (s.what) {
        case command::none: return;
        case command::create:
            REQUIRE_FALSE((context || making || ending || finished));
            making = true;
            wanted = false;
            return;
        case command::wait: waiting = true; return;
        case command::fail: return;
        case command::close:
            REQUIRE(context);
            context = suspect = false;
            ending = true;
            return;
        case command::give_up: REQUIRE(making); return;
        case command::finish:
            REQUIRE_FALSE((context || making || ending || finished));
            finished = true;
            waiting = false;
            return;
        }
    }

    bool happens(event e)
    {
        switch (e) {
        case event::replace:
            wanted = !m.stopping() && !m.failed();
            m.replace();
            return true;
        case event::condemned:
            if (!context || suspect)
                return false;
            m.condemned();
            return suspect = true;
        case event::lost:
        case event::lost_excused:
            if (!context)
                return false;
            context = suspect = false;
            obey(e == event::lost ? m.lost(dead, t, 0) : m.lost_excused(dead, t, 1));
            return true;
        case event::idle_turn:
        case event::busy_turn:
            if (!finished) {
                obey(m.advance_replace(e == event::busy_turn));
                obey(m.advance_stop(e == event::busy_turn));
            }
            return !finished;
        case event::gone:
            if (!std::exchange(ending, false))
                return false;
            obey(m.gone(false));
            return true;
        case event::created:
            if (!std::exchange(making, false))
                return false;
            m.created();
            return context = true;
        case event::refused:
            if (!std::exchange(making, false))
                return false;
            obey(m.create_failed(refused, t, 0));
            return true;
        case event::due:
            if (!std::exchange(waiting, false))
                return false;
            obey(m.due());
            return true;
        case event::revive:
            if (!m.failed())
                return false;
            obey(m.revive());
            return true;
        case event::stop: m.stop(false); return true;
        case event::abandon: m.stop(true); return true;
        case event::count: break;
        }
        return false;
    }

    void check() const
    {
        wanted_holds();
        REQUIRE(m.running() == context);
        REQUIRE((!m.open() || context));
        REQUIRE((m.state() == device_state::stopped) == finished);
        if (!finished && m.stopping())
            REQUIRE(m.state() == device_state::stopping);
        if (m.state() == device_state::ready)
            REQUIRE((context && !suspect && m.open()));
    }

    void wanted_holds() const
    {
        if (wanted && !m.stopping() && !m.failed())
            REQUIRE_FALSE(m.open());
    }

    /// Whatever happened before, without further failures the device settles: it has stopped, has failed, or is open.
    void settle() const
    {
        world w = *this;
        for (int i = 0; i < 10; ++i)
            for (const event e : {event::gone, event::due, event::created, event::idle_turn})
                if (!(e == event::idle_turn && w.suspect))
                    w.happens(e);
                else
                    w.happens(event::lost);
        w.check();
        REQUIRE_FALSE((w.making || w.ending || w.waiting));
        if (w.m.stopping())
            REQUIRE(w.finished);
        else
            REQUIRE((w.m.failed() || (w.m.open() && !w.wanted)));
    }

    void explore(int depth) const
    {
        check();
        settle();
        if (depth == 0)
            return;
        for (int e = 0; e < static_cast<int>(event::count); ++e) {
            world next = *this;
            if (next.happens(static_cast<event>(e)))
                next.explore(depth - 1);
        }
    }

    static constexpr lifecycle::time_point t{};
    lifecycle m{policy()};
    bool context = false;
    bool making = false;
    bool ending = false;
    bool waiting = false;
    bool suspect = false;
    bool finished = false;
    bool wanted = false;
};

TEST_SUITE_BEGIN("lifecycle");

TEST_CASE("no order of events makes two contexts at once, loses a replacement or runs for ever")
{
    world w;
    w.obey(w.m.start());
    w.explore(5);
    w.happens(world::event::created);
    w.explore(5);
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_lifecycle_walk
