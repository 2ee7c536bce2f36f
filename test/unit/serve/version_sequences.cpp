#include "support/sanitized.hpp"
#include "version_world.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>

namespace test_serve_version_sequences {

using namespace std::chrono_literals;
using coaccel::serve::hot_swap_options;
using test::version_world;
using event = version_world::event;

hot_swap_options options(std::chrono::nanoseconds confirm_after, std::uint32_t waiting)
{
    hot_swap_options o;
    o.confirm_after = confirm_after;
    o.max_waiting_loads = waiting;
    o.drain_limit = 7s;
    o.load_limit = 11s;
    o.warm_up_limit = 3s;
    // Two failures in a row roll back.
    o.rollback.min_requests = 2;
    o.rollback.max_requests = 3;
    return o;
}

/// Every sequence of up to `depth` events that can follow, each with an orderly end.
void explore(const version_world& here, int depth, std::uint64_t& ends)
{
    for (int i = 0; i < version_world::event_count; ++i) {
        version_world next = here;
        if (!next.apply(static_cast<event>(i)))
            continue;
        if (depth > 1) {
            explore(next, depth - 1, ends);
        } else {
            ++ends;
            next.finish();
        }
    }
}

void add_version(version_world& w)
{
    for (const event e : {event::load, event::turn, event::loaded, event::turn, event::warmed_up, event::turn})
        REQUIRE(w.apply(e));
}

/// A version that answers requests, and further ones.
version_world with_versions(const hot_swap_options& o, int count)
{
    version_world w(o);
    for (int i = 0; i < count; ++i)
        add_version(w);
    return w;
}

TEST_SUITE("version_switch sequences")
{
    TEST_CASE("whatever happens in whichever order, no request loses its version and none gets two")
    {
        constexpr int depth = test::sanitized ? 5 : 6;
        std::uint64_t ends = 0;
        SUBCASE("from the beginning")
        {
            explore(version_world(options(5s, 1)), depth + 1, ends);
        }
        SUBCASE("with one version")
        {
            explore(with_versions(options(5s, 1), 1), depth, ends);
        }
        SUBCASE("with a previous version")
        {
            explore(with_versions(options(5s, 1), 2), depth, ends);
        }
        SUBCASE("with a previous version and requests on both")
        {
            auto w = with_versions(options(5s, 0), 1);
            REQUIRE(w.apply(event::request));
            add_version(w);
            for (const event e : {event::request, event::request})
                REQUIRE(w.apply(e));
            explore(w, depth, ends);
        }
        SUBCASE("previous versions are not kept")
        {
            explore(with_versions(options(0s, 1), 1), depth, ends);
        }
        SUBCASE("previous versions are kept until they are confirmed by hand")
        {
            explore(with_versions(options(std::chrono::nanoseconds::max(), 1), 2), depth, ends);
        }
        CHECK(ends > 100);
    }

    TEST_CASE("long random sequences")
    {
        constexpr int rounds = test::sanitized ? 200 : 2000;
        std::uint64_t rollbacks = 0;
        for (unsigned seed = 0; seed < rounds; ++seed) {
            std::minstd_rand random(seed + 1);
            version_world w(options(seed % 3 == 0 ? 0s : 5s, seed % 4));
            for (int step = 0; step < 300; ++step) {
                // What ends a load, or everything, is rare, so that there is something to end.
                const auto e = static_cast<event>(random() % version_world::event_count);
                const bool stops = e == event::drain || e == event::abandon;
                const bool spoils = e == event::load_fails || e == event::warm_up_fails || e == event::cancel_newest ||
                                    e == event::cancel_oldest || e == event::time_passes;
                if ((stops && random() % 100 != 0) || (spoils && random() % 8 != 0))
                    continue;
                w.apply(e);
                // Sometimes after each event, sometimes after many.
                if (random() % (1 + seed % 5) == 0)
                    w.apply(event::turn);
            }
            rollbacks += static_cast<std::uint64_t>(w.rollbacks);
            w.finish();
        }
        CHECK(rollbacks > rounds / 4);
    }
}

} // namespace test_serve_version_sequences
