#include "device/published_status.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

namespace test_device_published_status {

namespace {

using namespace coaccel;
using detail::published_status;

struct fixture {
    boost::asio::io_context io;
    published_status published{io.get_executor()};
};

} // namespace

TEST_SUITE_BEGIN("published_status");

TEST_CASE_FIXTURE(fixture, "a ready device with requests in flight is busy, in any other state it is not")
{
    for (const auto state : {device_state::starting, device_state::ready, device_state::failed, device_state::stopped})
        for (const bool busy : {false, true}) {
            CAPTURE(static_cast<int>(state));
            published.set({state, 1, {}}, busy);
            CHECK(published.busy() == busy);
            CHECK(published.status().state == (busy && state == device_state::ready ? device_state::busy : state));
        }
}

TEST_CASE_FIXTURE(fixture, "a watch sees changes of the state, and none for a device that becomes busy")
{
    published.set({device_state::ready, 1, {}}, false);
    auto seen = published.watch_state();
    CHECK(seen.get().state == device_state::ready);
    int changes = 0;
    seen.async_changed([&](auto&&...) { ++changes; });
    published.set({device_state::ready, 1, {}}, true);
    published.set({device_state::ready, 1, {}}, false);
    io.poll();
    CHECK(changes == 0);
    published.set({device_state::failed, 1, errc::device_lost}, false);
    io.restart();
    io.poll();
    CHECK(changes == 1);
    CHECK(seen.get().reason == errc::device_lost);
}

TEST_CASE_FIXTURE(fixture, "the generation is published separately")
{
    const auto seen = published.watch_generation();
    published.set({device_state::ready, 2, {}}, false);
    CHECK(seen.get() == 0);
    published.set(generation{2});
    CHECK(seen.get() == 2);
    published.close();
    CHECK(published.status().generation == 2);
}

TEST_SUITE_END();

} // namespace test_device_published_status
