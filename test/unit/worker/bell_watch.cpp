#include "worker/bell_watch.hpp"

#include "worker/doorbell.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

using namespace coaccel;
using worker::bell_watch;
using worker::doorbell;
namespace asio = boost::asio;

namespace {

struct waker final : detail::context_events {
    void finished(detail::request&, error_code) noexcept override {}
    void lost(error_code) noexcept override {}
    void wake() noexcept override { ++count; }
    bool has_more() noexcept override { return false; }

    int count = 0;
};

struct fixture {
    asio::io_context io{1};
    waker events;
    doorbell bell = doorbell::create().value();
    std::shared_ptr<bell_watch> watch = bell_watch::create(io.get_executor(), bell.wait_fd(), events);
};

} // namespace

TEST_SUITE_BEGIN("bell_watch");

TEST_CASE("it asks for a turn when the bell rings, and is work of the executor until then only")
{
    fixture f;
    CHECK(f.io.run() == 0);
    f.io.restart();
    f.watch->arm();
    CHECK(f.io.poll() == 0);
    CHECK_FALSE(f.io.stopped());
    f.bell.ring();
    CHECK(f.io.run() == 1);
    CHECK(f.events.count == 1);
    f.watch->stop();
}

TEST_CASE("one that is disarmed is no work any more")
{
    fixture f;
    f.watch->arm();
    f.watch->disarm();
    f.io.run();
    CHECK(f.io.stopped());
    f.watch->stop();
}

TEST_CASE("who arms it again before the cancelled wait has ended is woken nevertheless")
{
    fixture f;
    f.watch->arm();
    f.watch->disarm();
    f.watch->arm();
    f.bell.ring();
    f.io.run();
    CHECK(f.events.count >= 1);
    f.watch->stop();
}

TEST_CASE("after stop nobody is asked for a turn")
{
    fixture f;
    f.watch->arm();
    f.watch->stop();
    f.bell.ring();
    f.io.run();
    f.watch->wake();
    CHECK(f.events.count == 0);
}

TEST_SUITE_END();
