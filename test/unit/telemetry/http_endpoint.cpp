#include "http_client.hpp"
#include "support/devices.hpp"

#include <coaccel/telemetry/http_endpoint.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace test_telemetry_http_endpoint {

namespace {

using namespace coaccel;
using namespace coaccel::telemetry;
using namespace std::chrono_literals;
using test::await;
using test::body_of;
using test::contains;
using test::exchange;
using test::last_request;
using test::status_of;

struct fixture {
    explicit fixture(http_endpoint_options options = {})
        : metrics(io.get_executor()), endpoint(http_endpoint::start(io.get_executor(), metrics, options).value())
    {}

    std::string ask(const std::string& method, const std::string& target, const std::string& fields = {})
    {
        return raw(last_request(method, target, fields));
    }

    std::string raw(std::string text) { return test::co_run(io, exchange(endpoint.port(), std::move(text))); }

    asio::io_context io;
    registry metrics;
    http_endpoint endpoint;
};

TEST_SUITE_BEGIN("http_endpoint");

TEST_CASE("every path has its reply")
{
    fixture f;
    auto gpu = test::make_device(f.io);
    const auto kept = f.metrics.add(gpu, "gpu0").value();

    const auto metrics = f.ask("GET", "/metrics");
    CHECK(status_of(metrics) == 200);
    CHECK(contains(metrics, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    CHECK(contains(metrics, "\ncoaccel_device_generation{device=\"gpu0\"} 1\n"));
    CHECK_FALSE(contains(metrics, "# EOF"));

    const auto open = f.ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    CHECK(contains(open, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    CHECK(open.ends_with("# EOF\n"));

    // Several fields are one list.
    CHECK(
        f.ask("GET", "/metrics", "Accept: text/html\r\nAccept: application/openmetrics-text\r\n").ends_with("# EOF\n"));

    CHECK(body_of(f.ask("GET", "/healthz")) == "ok\n");
    CHECK(body_of(f.ask("GET", "/readyz")) == "ready\n");

    const auto state = f.ask("GET", "/debug/state");
    CHECK(contains(state, "Content-Type: application/json\r\n"));
    CHECK(contains(body_of(state), "{\"name\":\"gpu0\",\"state\":\"ready\""));

    const auto page = f.ask("GET", "/");
    CHECK(contains(page, "Content-Type: text/html; charset=utf-8\r\n"));
    CHECK(contains(page, "Content-Security-Policy: default-src 'none';"));
    CHECK(contains(page, "Referrer-Policy: no-referrer\r\n"));
    CHECK(contains(page, "<title>coaccel</title>"));
    CHECK(page.ends_with("</html>\n"));

    CHECK(status_of(f.ask("GET", "/trace")) == 404);
    CHECK(status_of(f.ask("GET", "/nothing")) == 404);
}

TEST_CASE("the page uses nothing from outside")
{
    fixture f;
    const auto page = body_of(f.ask("GET", "/"));
    CHECK(page.size() > 1000);
    for (const char* reference : {"http:", "https:", "src=", "@import", "url("}) {
        // The namespace of SVG is a name, not an address.
        CAPTURE(reference);
        CHECK(test::occurrences(page, reference) ==
              test::occurrences(page, "http://www.w3.org/2000/svg") * (std::string(reference) == "http:" ? 1 : 0));
    }
}

TEST_CASE("HEAD has the header of GET and no body")
{
    fixture f;
    const auto get = f.ask("GET", "/healthz");
    const auto head = f.ask("HEAD", "/healthz");
    CHECK(body_of(get) == "ok\n");
    CHECK(body_of(head).empty());
    CHECK(head + "ok\n" == get);
    CHECK(contains(head, "Content-Length: 3\r\n"));
}

TEST_CASE("other methods are refused")
{
    fixture f;
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "FROB"}) {
        const auto reply = f.ask(method, "/metrics");
        CHECK(status_of(reply) == 405);
        CHECK(contains(reply, "Allow: GET, HEAD\r\n"));
    }
}

TEST_CASE("the token is checked")
{
    http_endpoint_options o;
    o.token = "secret";
    fixture f(o);
    const auto refused = f.ask("GET", "/metrics");
    CHECK(status_of(refused) == 401);
    CHECK(contains(refused, "WWW-Authenticate: Bearer\r\n"));
    CHECK_FALSE(contains(refused, "coaccel_"));
    CHECK(status_of(f.ask("GET", "/debug/state", "Authorization: Bearer wrong\r\n")) == 401);
    CHECK(status_of(f.ask("GET", "/readyz")) == 401);
    CHECK(status_of(f.ask("GET", "/metrics", "Authorization: Bearer secret\r\n")) == 200);
    CHECK(status_of(f.ask("GET", "/healthz")) == 200);
    CHECK(status_of(f.ask("GET", "/")) == 200);
}

TEST_CASE("a connection serves several requests, also if they arrive together")
{
    fixture f;
    const std::string one = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const auto replies = f.raw(one + one + one + last_request("GET", "/readyz"));
    CHECK(test::occurrences(replies, "HTTP/1.1 200 OK\r\n") == 4);
    CHECK(test::occurrences(replies, "ok\n") == 3);
    CHECK(replies.ends_with("ready\n"));
}

TEST_CASE("a body is ignored up to its limit")
{
    fixture f;
    CHECK(status_of(f.raw(
              "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")) ==
          200);
    const auto refused = f.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
    CHECK(status_of(refused) == 413);
}

TEST_CASE("malformed requests are refused, and the connection is closed")
{
    fixture f;
    for (const char* text :
         {"nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\r\n\r\n",
          "GET /healthz HTTP/1.1\r\nno colon\r\n\r\n", "GET /healthz HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
        CAPTURE(text);
        const auto reply = f.raw(text);
        CHECK(status_of(reply) == 400);
        CHECK(contains(reply, "Connection: close\r\n"));
    }
    CHECK(status_of(f.ask("GET", "/healthz")) == 200);
}

TEST_CASE("a header that is too long is refused")
{
    http_endpoint_options o;
    o.max_header_bytes = 512;
    fixture f(o);
    CHECK(status_of(f.ask("GET", "/healthz", "A: " + std::string(300, 'x') + "\r\n")) == 200);
    CHECK(status_of(f.ask("GET", "/healthz", "A: " + std::string(1000, 'x') + "\r\n")) == 431);
    CHECK(status_of(f.ask("GET", "/healthz", "A: " + std::string(100000, 'x') + "\r\n")) == 431);
    CHECK(status_of(f.ask("GET", "/" + std::string(1000, 'x'))) == 431);
}

TEST_CASE("a client that never finishes its header is disconnected")
{
    http_endpoint_options o;
    o.read_timeout = 20ms;
    fixture f(o);
    CHECK(f.raw("GET /healthz HTTP/1.1\r\nHost: ").empty());
    CHECK(f.raw("").empty());
}

TEST_CASE("a client that does not take its reply is disconnected")
{
    http_endpoint_options o;
    o.write_timeout = 20ms;
    o.trace = [] { return std::string(std::size_t{64} << 20, 'x'); };
    fixture f(o);
    auto socket = test::connected(f.io, f.endpoint.port());
    test::co_run(f.io, test::send(socket, last_request("GET", "/trace")));
    // Without reading: this completes only after the connection was closed.
    CHECK(await(f.io, f.endpoint.async_stop()));
}

TEST_CASE("beyond the limit, the connection that has waited longest for a request is closed")
{
    http_endpoint_options o;
    o.max_connections = 2;
    fixture f(o);
    const std::string one = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const auto read_reply = [](test::tcp::socket& s) -> asio::awaitable<std::string> {
        std::string text;
        co_await asio::async_read_until(s, asio::dynamic_buffer(text), "ok\n", asio::as_tuple(asio::use_awaitable));
        co_return text;
    };
    const auto served = [&](test::tcp::socket& s) {
        test::co_run(f.io, test::send(s, one));
        return status_of(test::co_run(f.io, read_reply(s))) == 200;
    };
    auto first = test::connected(f.io, f.endpoint.port());
    CHECK(served(first));
    auto second = test::connected(f.io, f.endpoint.port());
    CHECK(served(second));
    // The second has waited longer for its next request.
    CHECK(served(first));
    auto third = test::connected(f.io, f.endpoint.port());
    CHECK(served(third));
    CHECK(test::co_run(f.io, test::read_all(second)).empty());
    CHECK(served(first));
    CHECK(served(third));
}

TEST_CASE("beyond the limit, a connection is closed if all others have requests")
{
    asio::io_context io, stuck;
    const registry metrics(stuck.get_executor());
    http_endpoint_options o;
    o.max_connections = 1;
    const auto endpoint = http_endpoint::start(io.get_executor(), metrics, o).value();
    const auto begun =
        metrics.add_counter("coaccel_telemetry_collections_total", "Collections of all metrics.").value();
    auto busy = test::connected(io, endpoint.port());
    test::co_run(io, test::send(busy, last_request("GET", "/metrics")));
    test::run_until(io, [&] { return begun.value() == 1; });
    CHECK(test::co_run(io, exchange(endpoint.port(), last_request("GET", "/healthz"))).empty());
    stuck.run();
    CHECK(status_of(test::co_run(io, test::read_all(busy))) == 200);
}

TEST_CASE("a connection without the token is closed after the reply")
{
    http_endpoint_options o;
    o.token = "secret";
    fixture f(o);
    const auto reply = f.raw("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(status_of(reply) == 401);
    CHECK(contains(reply, "Connection: close\r\n"));
}

TEST_CASE("on a loopback address without a token, the host must be local")
{
    const auto status = [](fixture& f, const std::string& host) {
        return status_of(f.raw("GET /debug/state HTTP/1.1\r\nConnection: close\r\n" + host + "\r\n"));
    };
    fixture open;
    CHECK(status(open, "Host: localhost:1\r\n") == 200);
    CHECK(status(open, "Host: 127.0.0.1\r\n") == 200);
    CHECK(status(open, "") == 200);
    CHECK(status(open, "Host: evil.example\r\n") == 421);
    http_endpoint_options o;
    o.token = "secret";
    fixture with_token(o);
    CHECK(status(with_token, "Host: proxy.example\r\nAuthorization: Bearer secret\r\n") == 200);
    o = {};
    o.address = "0.0.0.0";
    fixture everywhere(o);
    CHECK(status(everywhere, "Host: machine.example\r\n") == 200);
}

TEST_CASE("many clients at the same time")
{
    http_endpoint_options o;
    o.max_connections = 100;
    fixture f(o);
    auto gpu = test::make_device(f.io);
    const auto kept = f.metrics.add(gpu, "gpu0").value();
    int right = 0, ended = 0;
    const auto client = [](std::uint16_t port, int& right) -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            const auto reply = co_await exchange(port, last_request("GET", i % 2 ? "/metrics" : "/debug/state"));
            right += status_of(reply) == 200 && contains(reply, "gpu0") ? 1 : 0;
        }
    };
    for (int i = 0; i < 40; ++i)
        asio::co_spawn(f.io, client(f.endpoint.port(), right), [&](std::exception_ptr) { ++ended; });
    test::run_until(f.io, [&] { return ended == 40; });
    CHECK(right == 200);
}

TEST_CASE("several threads run the executor")
{
    asio::thread_pool pool(3);
    const registry metrics(pool.get_executor());
    const auto kept = metrics.add_source([](metric_writer& out) { out.gauge("x", "", {}, 1); });
    const auto endpoint = http_endpoint::start(pool.get_executor(), metrics).value();
    std::vector<std::future<std::string>> replies;
    for (int i = 0; i < 30; ++i)
        replies.push_back(
            asio::co_spawn(pool, exchange(endpoint.port(), last_request("GET", "/metrics")), asio::use_future));
    for (auto& r : replies)
        CHECK(contains(r.get(), "\nx 1\n"));
    endpoint.async_stop(asio::use_future).get();
}

TEST_CASE("a device that is not ready makes /readyz fail with the reason")
{
    fixture f;
    auto gpu = test::make_device(f.io);
    const auto kept = f.metrics.add(gpu, "gpu0").value();
    CHECK(status_of(f.ask("GET", "/readyz")) == 200);
    CHECK(await(f.io, gpu.async_shutdown()));
    const auto reply = f.ask("GET", "/readyz");
    CHECK(status_of(reply) == 503);
    CHECK(contains(body_of(reply), "device \"gpu0\" is stopped"));
    CHECK(status_of(f.ask("GET", "/healthz")) == 200);
    CHECK(status_of(f.ask("GET", "/metrics")) == 200);
}

TEST_CASE("the trace comes from the option")
{
    http_endpoint_options o;
    int calls = 0;
    o.trace = [&]() -> std::string {
        if (++calls > 1)
            throw std::runtime_error("no trace");
        return "{\"traceEvents\":[]}";
    };
    fixture f(o);
    const auto reply = f.ask("GET", "/trace");
    CHECK(contains(reply, "Content-Type: application/json\r\n"));
    CHECK(body_of(reply) == "{\"traceEvents\":[]}");
    const auto failed = f.ask("GET", "/trace");
    CHECK(status_of(failed) == 500);
    CHECK(body_of(failed) == "no trace");
}

TEST_CASE("a trace that throws something else than a std::exception is an error of the server")
{
    http_endpoint_options o;
    o.trace = []() -> std::string { throw 1; };
    fixture f(o);
    CHECK(status_of(f.ask("GET", "/trace")) == 500);
    CHECK(status_of(f.ask("GET", "/healthz")) == 200);
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_http_endpoint
