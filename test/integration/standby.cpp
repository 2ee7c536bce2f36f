#include "isolated.hpp"
#include "ready_workers.hpp"

#include <doctest/doctest.h>

namespace test_integration_standby {

using namespace coaccel;
using namespace std::chrono_literals;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

namespace {

struct standby_fixture : isolated_fixture {
    using isolated_fixture::isolated_fixture;

    /// Waits for a ready standby other than `before`.
    int wait_for_standby(int before = 0)
    {
        const int first = process();
        std::vector<int> found;
        test::run_until(io, [&] {
            found = test::ready_besides(first);
            return found.size() == 1 && found.front() != before;
        });
        return found.front();
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated standby");

TEST_CASE("a killed standby is replaced before it is needed, and the device continues")
{
    auto o = isolated_options();
    o.standby = 1;
    standby_fixture f(o);
    const auto x = f.upload(numbers(100));
    const int first = f.process();
    const int killed = f.wait_for_standby();
    REQUIRE(::kill(killed, SIGKILL) == 0);
    const int next = f.wait_for_standby(killed);
    CHECK(f.process() == first);
    CHECK(f.gpu.status().generation == 1);
    CHECK(f.download(x.ref()) == numbers(100));
    f.send(SIGKILL);
    f.wait_for_generation(2);
    CHECK(f.process() == next);
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_CASE("a device with a standby does not wait for the back-off")
{
    auto o = isolated_options();
    o.standby = 1;
    o.restart.initial_backoff = o.restart.max_backoff = std::chrono::minutes(10);
    standby_fixture f(o);
    for (const generation g : {generation(2), generation(3)}) {
        (void)f.wait_for_standby();
        f.send(SIGKILL);
        f.wait_for_generation(g);
    }
    CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
}

TEST_CASE("a standby without heartbeats is replaced")
{
    auto o = isolated_options();
    o.standby = 1;
    o.worker.heartbeat = 200ms;
    standby_fixture f(o);
    const int first = f.process();
    const int stopped = f.wait_for_standby();
    REQUIRE(::kill(stopped, SIGSTOP) == 0);
    CHECK(f.wait_for_standby(stopped) != stopped);
    CHECK(f.process() == first);
    CHECK(f.gpu.status().generation == 1);
}

TEST_SUITE_END();

} // namespace test_integration_standby
