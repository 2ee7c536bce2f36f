#include "inventory.hpp"
#include "isolated.hpp"
#include "support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

namespace test_integration_leaks {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::inventory;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

namespace {

constexpr int usual_restarts = test::sanitized ? 100 : 1000;

int restarts()
{
    const char* wanted = std::getenv("COACCEL_RESTARTS");
    return wanted ? std::atoi(wanted) : usual_restarts;
}

/// Kills the worker and uses its successor.
void restart(isolated_fixture& f)
{
    const auto g = f.gpu.status().generation;
    f.send(SIGKILL);
    f.wait_for_generation(g + 1);
    REQUIRE(f.gpu.status().generation == g + 1);
    const auto x = f.upload(numbers(16));
    REQUIRE(f.download(x.ref()) == numbers(16));
}

/// Except for the threads that make and end contexts: their number is the maximum that was ever needed at a time.
bool is_as(const inventory& expected)
{
    auto now = inventory::take();
    const bool few = now.threads <= expected.threads + 8;
    now.threads = expected.threads;
    return few && now == expected;
}

} // namespace

TEST_SUITE_BEGIN("isolated leaks");

TEST_CASE("restarted workers leave nothing behind")
{
    for (const int standby : {1, 2}) {
        CAPTURE(standby);
        auto o = isolated_options();
        o.standby = standby;
        o.restart.max_restarts = 2 * restarts() + 100;
        o.restart.initial_backoff = 0ms;
        // Objects that are created once and kept exist after the first device.
        {
            isolated_fixture f(o);
        }
        const auto before = inventory::take();
        CHECK(before.areas == 0);
        CHECK(test::childless());
        {
            isolated_fixture f(o);
            CHECK(f.download(f.upload(numbers(16)).ref()) == numbers(16));
            const auto in_use = inventory::take();
            CHECK(in_use.areas == 2 + standby);
            for (int i = 0; i < restarts() / 2; ++i)
                restart(f);
            // The last replaced worker may still be ending.
            test::run_until(f.io, [&] { return is_as(in_use) && !test::has_zombie(); });
        }
        CHECK(inventory::take_expecting(before) == before);
        CHECK(test::childless());
    }
}

TEST_CASE("workers replaced by async_replace leave nothing behind")
{
    auto o = isolated_options();
    o.standby = 1;
    {
        isolated_fixture f(o);
    }
    const auto before = inventory::take();
    {
        isolated_fixture f(o);
        for (int i = 0; i < restarts() / 10; ++i) {
            REQUIRE(await(f.io, f.gpu.async_replace()));
            REQUIRE(f.download(f.upload(numbers(16)).ref()) == numbers(16));
        }
    }
    CHECK(inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

TEST_SUITE_END();

} // namespace test_integration_leaks
