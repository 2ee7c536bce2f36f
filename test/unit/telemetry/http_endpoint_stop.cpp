#include "http_client.hpp"
#include "support/devices.hpp"

#include <coaccel/telemetry/http_endpoint.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>

namespace test_telemetry_http_endpoint_stop {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using namespace std::chrono_literals;
using test::await;
using test::connected;
using test::exchange;
using test::last_request;
using test::read_all;
using test::status_of;

TEST_SUITE_BEGIN("http_endpoint stop");

TEST_CASE("a port that is taken is an error that names address and port")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto first = http_endpoint::start(io.get_executor(), metrics).value();
    http_endpoint_options o;
    o.port = first.port();
    const auto second = http_endpoint::start(io.get_executor(), metrics, o);
    REQUIRE_FALSE(second);
    CHECK(second.error() == errc::start_failed);
    CHECK(second.error().message() == "http_endpoint: cannot listen on address 127.0.0.1, port " +
                                          std::to_string(first.port()) + ": Address already in use");
    CHECK(await(io, first.async_stop()));
    CHECK(http_endpoint::start(io.get_executor(), metrics, o));
}

TEST_CASE("options are checked")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto refusal = [&](auto change) {
        http_endpoint_options o;
        change(o);
        const auto started = http_endpoint::start(io.get_executor(), metrics, o);
        REQUIRE_FALSE(started);
        CHECK(started.error() == errc::invalid_option);
        return started.error().message();
    };
    CHECK(refusal([](auto& o) { o.address = "localhost"; }) ==
          "http_endpoint: address is \"localhost\", which is not an IP address");
    CHECK(refusal([](auto& o) { o.max_connections = 0; }) == "http_endpoint: max_connections is 0");
    CHECK(refusal([](auto& o) { o.max_header_bytes = 0; }) == "http_endpoint: max_header_bytes is 0");
    CHECK(refusal([](auto& o) { o.max_body_bytes = std::size_t{1} << 40; }) ==
          "http_endpoint: max_body_bytes is 1099511627776; it must be at most 1048576");
    CHECK(refusal([](auto& o) { o.token = "secret "; }) ==
          "http_endpoint: token has a space, a control character or a byte outside ASCII at position 6");
    CHECK(refusal([](auto& o) { o.token = "\nsecret"; }) ==
          "http_endpoint: token has a space, a control character or a byte outside ASCII at position 0");
    CHECK(refusal([](auto& o) { o.token = "s\xc3\xa9"; }) ==
          "http_endpoint: token has a space, a control character or a byte outside ASCII at position 1");
    CHECK(refusal([](auto& o) { o.read_timeout = 0ns; }) == "http_endpoint: read_timeout is 0 ns; it must be positive");
    CHECK(refusal([](auto& o) { o.write_timeout = -1ns; }) ==
          "http_endpoint: write_timeout is -1 ns; it must be positive");
}

TEST_CASE("idle connections are closed by a stop, which ends all work")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    auto silent = connected(io, endpoint.port());
    auto kept_alive = connected(io, endpoint.port());
    test::co_run(io, test::send(kept_alive, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK(await(io, endpoint.async_stop()));
    CHECK(test::co_run(io, read_all(silent)).empty());
    test::co_run(io, read_all(kept_alive));
    CHECK(await(io, endpoint.async_stop()));
    test::run_out(io);
    const auto refused = test::co_run(io, [](std::uint16_t port) -> asio::awaitable<bool> {
        test::tcp::socket socket(co_await asio::this_coro::executor);
        const test::tcp::endpoint where(asio::ip::address_v4::loopback(), port);
        const auto [ec] = co_await socket.async_connect(where, asio::as_tuple(asio::use_awaitable));
        co_return bool(ec);
    }(endpoint.port()));
    CHECK(refused);
}

TEST_CASE("a request in progress gets its reply, and the stop waits for it")
{
    asio::io_context io, stuck;
    const registry metrics(io.get_executor(), {.source_timeout = test::patience});
    auto late = test::make_device(stuck);
    const auto kept = metrics.add(late, "late").value();
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    std::optional<std::string> reply;
    asio::co_spawn(io, exchange(endpoint.port(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                   [&](std::exception_ptr, std::string text) { reply = std::move(text); });
    // The collection has begun and waits for the device, whose executor does not run yet.
    const auto begun =
        metrics.add_counter("coaccel_telemetry_collections_total", "Collections of all metrics.").value();
    test::run_until(io, [&] { return begun.value() == 1; });
    CHECK_FALSE(reply);
    bool stopped = false;
    endpoint.async_stop([&](error_code) { stopped = true; });
    io.poll();
    CHECK_FALSE(stopped);
    test::run_until(stuck, [&] {
        io.restart();
        io.poll();
        return reply && stopped;
    });
    CHECK(status_of(*reply) == 200);
    CHECK(test::contains(*reply, "coaccel_device_generation{device=\"late\"} 1"));
}

TEST_CASE("a request that has arrived completely before a stop gets its reply")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    const std::string one = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    auto socket = connected(io, endpoint.port());
    const auto read_reply = [](test::tcp::socket& s) -> asio::awaitable<std::string> {
        std::string text;
        co_await asio::async_read_until(s, asio::dynamic_buffer(text), "ok\n", asio::use_awaitable);
        co_return text;
    };
    asio::write(socket, asio::buffer(one));
    CHECK(status_of(test::co_run(io, read_reply(socket))) == 200);
    // The session waits for the next request, which is in its socket when the stop begins.
    io.restart();
    io.poll();
    asio::write(socket, asio::buffer(one));
    auto partial = connected(io, endpoint.port());
    asio::write(partial, asio::buffer(one.substr(0, 20)));
    bool stopped = false;
    endpoint.async_stop([&](error_code) { stopped = true; });
    const auto reply = test::co_run(io, read_all(socket));
    CHECK(status_of(reply) == 200);
    CHECK(test::contains(reply, "Connection: close\r\n"));
    CHECK(test::co_run(io, read_all(partial)).empty());
    test::run_until(io, [&] { return stopped; });
}

TEST_CASE("cancelling a stop ends the wait")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics).value();
    asio::cancellation_signal cancel;
    std::optional<error_code> ended;
    endpoint.async_stop(asio::bind_cancellation_slot(cancel.slot(), [&](error_code ec) { ended = ec; }));
    cancel.emit(asio::cancellation_type::total);
    CHECK_FALSE(ended);
    test::run_out(io);
    CHECK(ended == asio::error::operation_aborted);
}

TEST_CASE("the destructor closes everything")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    std::optional endpoint(http_endpoint::start(io.get_executor(), metrics).value());
    auto silent = connected(io, endpoint->port());
    endpoint.reset();
    CHECK(test::co_run(io, read_all(silent)).empty());
    silent.close();
    test::run_out(io);
}

TEST_CASE("assignment closes the endpoint that is replaced")
{
    asio::io_context io;
    const registry metrics(io.get_executor());
    auto a = http_endpoint::start(io.get_executor(), metrics).value();
    auto b = http_endpoint::start(io.get_executor(), metrics).value();
    auto silent = connected(io, a.port());
    const auto port = b.port();
    a = std::move(b);
    CHECK(test::co_run(io, read_all(silent)).empty());
    CHECK(a.port() == port);
    CHECK(status_of(test::co_run(io, exchange(port, last_request("GET", "/healthz")))) == 200);
}

TEST_CASE("an endpoint outlives its execution context, with connections and a stop that waits")
{
    std::optional<asio::io_context> io(std::in_place);
    const registry metrics(io->get_executor());
    const auto endpoint = http_endpoint::start(io->get_executor(), metrics).value();
    asio::io_context other;
    const auto silent = connected(other, endpoint.port());
    io->poll();
    io->restart();
    io->poll();
    endpoint.async_stop([](error_code) { FAIL("called"); });
    io.reset();
    endpoint.async_stop([](error_code) { FAIL("called"); });
    CHECK(endpoint.port() != 0);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_http_endpoint_stop
