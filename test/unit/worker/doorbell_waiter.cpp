#include "worker/transport/doorbell_waiter.hpp"

#include "worker/transport/doorbell.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

namespace test_worker_doorbell_waiter {

using namespace coaccel;
using worker::doorbell;
using worker::doorbell_waiter;
namespace asio = boost::asio;

namespace {

struct waker final : detail::context_events {
    void finished(detail::request&, error_code) noexcept override {}
    void lost(error_code, detail::loss_cause) noexcept override {}
    void wake() noexcept override { ++count; }
    bool has_more() noexcept override { return false; }

    int count = 0;
};

struct fixture {
    asio::io_context io{1};
    waker events;
    doorbell bell = doorbell::create().value();
    std::shared_ptr<doorbell_waiter> watch = doorbell_waiter::create(io.get_executor(), bell.wait_fd(), events);
};

} // namespace

TEST_SUITE_BEGIN("doorbell_waiter");

TEST_CASE("a ring requests a turn, and only an armed waiter counts as outstanding work")
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

TEST_CASE("a disarmed waiter is no outstanding work")
{
    fixture f;
    f.watch->arm();
    f.watch->disarm();
    f.io.run();
    CHECK(f.io.stopped());
    f.watch->stop();
}

TEST_CASE("a ring wakes a waiter that was rearmed before its cancelled wait ended")
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

TEST_CASE("a stopped waiter requests no turn")
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

} // namespace test_worker_doorbell_waiter
