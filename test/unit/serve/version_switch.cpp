#include "serve/version_switch.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace test_serve_version_switch {

using namespace std::chrono_literals;
using coaccel::shutdown;
using coaccel::detail::version_switch;
using coaccel::serve::hot_swap_options;
using coaccel::serve::version_state;
using kind = version_switch::action_kind;
using end = version_switch::load_end;

const version_switch::time_point start{100s};

hot_swap_options limits()
{
    hot_swap_options o;
    o.load_limit = 10s;
    o.warm_up_limit = 5s;
    o.drain_limit = 3s;
    o.confirm_after = 60s;
    o.max_waiting_loads = 1;
    return o;
}

/// The actions so far, as a text: "load 1, warm_up 1".
std::string actions(version_switch& m)
{
    std::string all;
    while (const auto a = m.next_action()) {
        all += all.empty() ? "" : ", ";
        const auto n = " " + std::to_string(a->version);
        switch (a->what) {
        case kind::load: all += "load" + n; break;
        case kind::warm_up: all += "warm_up" + n; break;
        case kind::cancel_work: all += "cancel_work" + n; break;
        case kind::load_ended: {
            constexpr const char* how[] = {"switched", "failed", "late", "cancelled", "stopped"};
            all += how[static_cast<int>(a->end)] + n;
            break;
        }
        case kind::confirmed: all += "confirmed" + n; break;
        case kind::rolled_back: all += "rolled_back" + n; break;
        case kind::close: all += (a->mode == shutdown::drain ? "drain" : "abandon") + n; break;
        case kind::overdue: all += "overdue" + n; break;
        case kind::closed: all += "closed" + n; break;
        case kind::release: all += "release" + n; break;
        case kind::stopped: all += "stopped"; break;
        }
    }
    return all;
}

void load(version_switch& m, version_switch::number n, version_switch::time_point now = start)
{
    REQUIRE(m.load(n, now) == version_switch::admission::accepted);
    REQUIRE(m.loaded(n, true, now));
    m.warmed_up(n, true, now);
}

TEST_SUITE("version_switch")
{
    TEST_CASE("a version is loaded, warmed up and switched to")
    {
        version_switch m(limits());
        CHECK(m.take() == 0);
        CHECK(m.load(1, start) == version_switch::admission::accepted);
        CHECK(actions(m) == "load 1");
        CHECK(m.next_time() == start + 10s);
        CHECK(m.loaded(1, true, start + 1s));
        CHECK(actions(m) == "warm_up 1");
        CHECK(m.next_time() == start + 6s);
        CHECK(m.take() == 0);
        m.warmed_up(1, true, start + 2s);
        CHECK(actions(m) == "switched 1");
        CHECK(m.take() == 1);
        CHECK(m.next_time() == version_switch::time_point::max());
    }

    TEST_CASE("each step has its limit, and a late end of a function changes nothing")
    {
        version_switch m(limits());
        REQUIRE(m.load(1, start) == version_switch::admission::accepted);
        actions(m);
        m.advance(start + 10s - 1ns);
        CHECK(actions(m).empty());
        m.advance(start + 10s);
        CHECK(actions(m) == "cancel_work 1, late 1, release 1");
        CHECK_FALSE(m.loaded(1, true, start + 11s));
        REQUIRE(m.load(2, start) == version_switch::admission::accepted);
        REQUIRE(m.loaded(2, true, start));
        actions(m);
        m.advance(start + 5s);
        CHECK(actions(m) == "cancel_work 2, late 2, drain 2");
        m.warmed_up(2, true, start + 6s);
        CHECK(m.current() == 0);
        m.closed(2, start + 6s);
        CHECK(actions(m) == "closed 2, release 2");
    }

    TEST_CASE("one load at a time; the next begins when the one before has ended")
    {
        version_switch m(limits());
        REQUIRE(m.load(1, start) == version_switch::admission::accepted);
        REQUIRE(m.load(2, start) == version_switch::admission::accepted);
        CHECK(m.load(3, start) == version_switch::admission::full);
        CHECK(actions(m) == "load 1");
        // The limit of a load that waits has not begun.
        CHECK(m.loaded(1, false, start + 9s));
        CHECK(actions(m) == "failed 1, release 1, load 2");
        CHECK(m.next_time() == start + 19s);
        CHECK(m.cancel(2, start));
        CHECK_FALSE(m.cancel(2, start));
        CHECK(actions(m) == "cancel_work 2, cancelled 2, release 2");
    }

    TEST_CASE("the previous version is kept until the confirmation, and then drained")
    {
        version_switch m(limits());
        load(m, 1);
        load(m, 2, start);
        actions(m);
        CHECK(m.current() == 2);
        CHECK(m.previous() == 1);
        CHECK(m.next_time() == start + 60s);
        m.advance(start + 60s);
        CHECK(actions(m) == "confirmed 2, drain 1");
        CHECK(m.previous() == 0);
        CHECK_FALSE(m.roll_back(0, start + 60s));
    }

    TEST_CASE("a version whose requests do not end is abandoned, and given up if that does not end either")
    {
        version_switch m(limits());
        load(m, 1);
        REQUIRE(m.take() == 1);
        load(m, 2);
        REQUIRE(m.confirm(2, start));
        actions(m);
        m.advance(start + 3s);
        CHECK(actions(m) == "overdue 1, abandon 1");
        m.advance(start + 6s);
        CHECK(actions(m) == "closed 1");
        CHECK(m.versions().front().state == version_state::closed);
        m.closed(1, start + 7s);
        CHECK(actions(m).empty());
        m.ended(1, version_switch::outcome::completed, start + 7s);
        CHECK(actions(m) == "release 1");
    }

    TEST_CASE("the rule returns to the previous version within the call that ends the request")
    {
        auto o = limits();
        o.rollback = {.max_failure_share = 0.5, .min_requests = 2, .max_requests = 10};
        version_switch m(o);
        load(m, 1);
        load(m, 2);
        actions(m);
        CHECK(m.watches(2));
        CHECK_FALSE(m.watches(1));
        for (int i = 0; i < 3; ++i)
            REQUIRE(m.take() == 2);
        m.ended(2, version_switch::outcome::failed, start);
        m.ended(2, version_switch::outcome::other, start);
        CHECK(m.current() == 2);
        m.ended(2, version_switch::outcome::failed, start);
        CHECK(m.current() == 1);
        CHECK(actions(m) == "rolled_back 2, drain 2");
    }

    TEST_CASE("a stop ends everything, at once if it abandons")
    {
        version_switch m(limits());
        load(m, 1);
        REQUIRE(m.take() == 1);
        REQUIRE(m.load(2, start) == version_switch::admission::accepted);
        REQUIRE(m.load(3, start) == version_switch::admission::accepted);
        actions(m);
        m.stop(shutdown::drain, start);
        CHECK(actions(m) == "cancel_work 2, stopped 2, release 2, stopped 3, release 3");
        CHECK(m.load(4, start) == version_switch::admission::stopped);
        m.stop(shutdown::abandon, start);
        CHECK(actions(m) == "abandon 1");
        m.closed(1, start);
        // It does not wait for the request.
        CHECK(actions(m) == "closed 1, stopped");
        m.ended(1, version_switch::outcome::failed, start);
        CHECK(actions(m) == "release 1");
        m.stop(shutdown::drain, start);
        CHECK(actions(m).empty());
    }
}

} // namespace test_serve_version_switch
