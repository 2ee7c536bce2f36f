#include "serve/replica_set.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace test_serve_replica_set {

using namespace coaccel::detail;
using coaccel::device_state;
using coaccel::serve::balance;

const auto any = [](std::size_t) { return true; };

TEST_SUITE("replica_set")
{
    TEST_CASE("the least loaded replica is chosen, and equal ones in turn")
    {
        replica_set r(3, balance::least_loaded);
        CHECK(r.pick(0, 0, any) == 0u);
        CHECK(r.pick(0, 0, any) == 1u);
        CHECK(r.pick(0, 0, any) == 2u);
        r.started(0);
        r.started(1);
        CHECK(r.pick(0, 0, any) == 2u);
        r.started(2);
        r.started(2);
        r.ended(1);
        CHECK(r.pick(0, 0, any) == 1u);
    }

    TEST_CASE("one after another, whatever their load")
    {
        replica_set r(3, balance::round_robin);
        r.started(1);
        for (std::size_t i = 0; i < 9; ++i)
            CHECK(r.pick(0, 0, any) == i % 3);
        r.set_health(1, replica_health::down);
        CHECK(r.pick(0, 0, any) == 0u);
        CHECK(r.pick(0, 0, any) == 2u);
        CHECK(r.pick(0, 0, any) == 0u);
    }

    TEST_CASE("the less loaded of two different replicas is chosen")
    {
        replica_set r(4, balance::two_choices);
        for (int i = 0; i < 10; ++i)
            r.started(0);
        std::mt19937_64 random(1);
        std::map<std::size_t, int> chosen;
        for (int i = 0; i < 3000; ++i)
            ++chosen[*r.pick(0, random(), any)];
        // It loses against every other one.
        CHECK(chosen[0] == 0);
        for (std::size_t i = 1; i < 4; ++i)
            CHECK(chosen[i] > 500);
        for (std::size_t i = 1; i < 4; ++i)
            r.set_health(i, replica_health::down);
        CHECK(r.pick(0, random(), any) == 0u);
    }

    TEST_CASE("a key stays with its replica, and only the keys of a lost one move")
    {
        replica_set r(5, balance::sticky);
        std::map<std::uint64_t, std::size_t> home;
        std::map<std::size_t, int> keys;
        for (std::uint64_t k = 0; k < 5000; ++k) {
            home[k] = *r.pick(k, 0, any);
            ++keys[home[k]];
        }
        for (std::size_t i = 0; i < 5; ++i)
            CHECK(keys[i] > 800);
        r.set_health(2, replica_health::down);
        for (std::uint64_t k = 0; k < 5000; ++k) {
            const auto now = *r.pick(k, 0, any);
            if (home[k] == 2)
                CHECK(now != 2);
            else
                CHECK(now == home[k]);
        }
        r.set_health(2, replica_health::up);
        for (std::uint64_t k = 0; k < 5000; ++k)
            CHECK(r.pick(k, 0, any) == home[k]);
    }

    TEST_CASE("one that is being repaired is chosen only if none works")
    {
        replica_set r(2, balance::least_loaded);
        r.set_health(0, replica_health::waiting);
        for (int i = 0; i < 5; ++i) {
            CHECK(r.pick(0, 0, any) == 1u);
            r.started(1);
        }
        r.set_health(1, replica_health::down);
        CHECK(r.pick(0, 0, any) == 0u);
        r.set_health(0, replica_health::down);
        CHECK_FALSE(r.pick(0, 0, any));
    }

    TEST_CASE("one that is drained or has no room is not chosen")
    {
        replica_set r(2, balance::least_loaded);
        r.set_draining(0, true);
        CHECK(r.pick(0, 0, any) == 1u);
        CHECK_FALSE(r.pick(0, 0, [](std::size_t i) { return i != 1; }));
        r.set_draining(0, false);
        CHECK(r.pick(0, 0, [](std::size_t i) { return i != 1; }) == 0u);
    }

    TEST_CASE("every state of a device has a health")
    {
        for (const auto s : {device_state::ready, device_state::busy})
            CHECK(health_of(s) == replica_health::up);
        for (const auto s : {device_state::starting, device_state::suspect, device_state::rebuilding})
            CHECK(health_of(s) == replica_health::waiting);
        for (const auto s : {device_state::failed, device_state::stopping, device_state::stopped})
            CHECK(health_of(s) == replica_health::down);
    }
}

} // namespace test_serve_replica_set
